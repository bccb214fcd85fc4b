// Points of figures as binary columns: kept for live_figure.js, by their digests, as long as this
// component is on the page.

function read(bytes) {
  const first = bytes.indexOf(10)
  const second = bytes.indexOf(10, first + 1)
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to))
  const about = JSON.parse(text(first + 1, second))
  const { buffer } = bytes.slice(second + 1) // a copy begins where typed arrays may
  let at = 0
  const next = (Kind, n) => {
    const column = new Kind(buffer, at, n)
    at += column.byteLength
    return column
  }
  const columns = {
    x: next(Float32Array, about.n),
    y: next(Float32Array, about.n),
    rows: next(Int32Array, about.n),
    values: about.values ? next(Float32Array, about.n) : null,
  }
  const [up, across] = about.density
  columns.density = Array.from({ length: up }, () => next(Uint8Array, across))
  return [text(0, first), columns]
}

export default function ({ parentElement, data }) {
  const node = parentElement.querySelector(".neuralviz-columns")
  const all = (window.neuralvizColumns ??= new Map())
  const [digest, columns] = read(data)
  if (digest !== node.digest) {
    // Those before stay until the next ones: the figure may still be drawn with them.
    all.delete(node.before)
    node.before = node.digest
    node.digest = digest
    all.set(digest, columns)
    window.dispatchEvent(new Event("neuralviz-columns"))
  }
  return () => {
    all.delete(node.digest)
    all.delete(node.before)
  }
}
