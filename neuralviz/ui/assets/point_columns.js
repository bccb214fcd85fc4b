// Points of figures as binary columns: kept for live_figure.js, by their digests, as long as any
// component that brought them is on the page.

const all = (window.neuralvizColumns ??= new Map()) // {columns, holders} by digest

function read(bytes) {
  const end = bytes.indexOf(10)
  const about = JSON.parse(textOf(bytes, end))
  const { buffer } = bytes.slice(end + 1) // a copy begins where typed arrays may
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
  return columns
}

function textOf(bytes, end) {
  return new TextDecoder().decode(bytes.subarray(0, end))
}

function hold(node, digest, bytes) {
  if (!all.has(digest)) all.set(digest, { columns: read(bytes), holders: new Set() })
  all.get(digest).holders.add(node)
}

function letGo(node, digest) {
  const holders = all.get(digest)?.holders
  holders?.delete(node)
  if (holders?.size === 0) all.delete(digest)
}

export default function ({ parentElement, data }) {
  const node = parentElement.querySelector(".neuralviz-columns")
  const end = data.indexOf(10)
  const digest = textOf(data, end)
  if (digest !== node.digest) {
    // Those before stay until the next ones: the figure may still be drawn with them.
    letGo(node, node.before)
    node.before = node.digest
    node.digest = digest
    hold(node, digest, data.subarray(end + 1))
    window.dispatchEvent(new Event("neuralviz-columns"))
  }
  return () => {
    letGo(node, node.digest)
    letGo(node, node.before)
  }
}
