// Names of clusters, and a searched sentence, where there is room for them: inside the frame, never
// on points or on each other, each with a line to its place. Closer up there is room for more.
// In front of picture.js, live_figure.js and map_page.js.

const MOST_NAMES = 30 // on a map
const NAME_GAPS = [7, 12, 18, 26, 36, 48, 62, 80, 110, 150, 200, 260] // px from a place to its name
const FURTHEST = 62 // px from a cluster; the searched sentence may be further away
const SENTENCE = "sentence" // the name of the searched one, which is always there
const NAME_TURNS = 24 // directions from a cluster
const NAME_ROOM = 2 // px around a name
const STEP = 6 // px, along a line to a cluster
const POINT_COST = 10 // px of line that a point on it is worth
const MOST_COST = 170 // px; what costs more waits for a closer look
const LETTER_HEIGHT = 1.4 // of its size
const CELL = 24 // px, of a grid of points

const pen = document.createElement("canvas").getContext("2d")

function measure(text, { size, weight = "normal", family }) {
  pen.font = `${weight} ${size}px ${family}`
  return pen.measureText(text).width
}

// What a label of plotly's says, without its markup.
function textOf(html) {
  const parsed = new DOMParser().parseFromString(html.replaceAll("<br>", " "), "text/html")
  return parsed.body.textContent.replace(/\s+/g, " ").trim()
}

const boxAround = (x, y, across, up) =>
  ({ left: x - across, right: x + across, top: y - up, bottom: y + up })

const overlap = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom

// Whether the line from one place to another goes through a box (Liang and Barsky 1984).
function crosses([x, y], [toX, toY], { left, right, top, bottom }) {
  let [first, last] = [0, 1]
  for (const [step, low, high] of [[toX - x, left - x, right - x], [toY - y, top - y, bottom - y]]) {
    if (!step && (low > 0 || high < 0)) return false
    const ends = step ? [low / step, high / step] : [0, 1]
    first = Math.max(first, Math.min(...ends))
    last = Math.min(last, Math.max(...ends))
  }
  return first < last
}

// Whether the lines between two pairs of places meet.
function meet([a, b], [c, d]) {
  const turn = ([x, y], [u, v], [p, q]) => Math.sign((u - x) * (q - y) - (v - y) * (p - x))
  return turn(a, b, c) !== turn(a, b, d) && turn(c, d, a) !== turn(c, d, b)
}

// A function that says whether a box in px of the frame lies on a point.
function findPoints({ _fullData, _fullLayout: { xaxis, yaxis } }) {
  const cells = new Map()
  const keyOf = (x, y) => `${Math.floor(x / CELL)} ${Math.floor(y / CELL)}`
  for (const { visible, mode, marker, x, y } of _fullData) {
    if (visible !== true || !mode?.includes("markers") || marker.opacity === 0) continue
    const radius = Math.max(...[marker.size].flat()) / 2
    for (let i = 0; i < x.length; i += 1) {
      const place = [xaxis.d2p(x[i]), yaxis.d2p(y[i]), radius]
      const key = keyOf(...place)
      if (cells.has(key)) cells.get(key).push(place)
      else cells.set(key, [place])
    }
  }
  return ({ left, right, top, bottom }) => {
    for (let across = left - CELL; across < right + 2 * CELL; across += CELL) {
      for (let down = top - CELL; down < bottom + 2 * CELL; down += CELL) {
        for (const [x, y, radius] of cells.get(keyOf(across, down)) ?? []) {
          if (overlap({ left, right, top, bottom }, boxAround(x, y, radius, radius))) return true
        }
      }
    }
    return false
  }
}

// How far points are in the way of a line.
function costOfLine([x, y], [toX, toY], isOnPoint) {
  const n = Math.round(Math.hypot(toX - x, toY - y) / STEP)
  let hits = 0
  for (let i = 1; i < n; i += 1) {
    if (isOnPoint(boxAround(x + (toX - x) * i / n, y + (toY - y) * i / n, 1, 1))) hits += 1
  }
  return POINT_COST * hits
}

// Where a name can be, by px of line, the nearest first, and of these the furthest from the middle.
function* listPlaces([x, y], [across, up], middle, scale) {
  const outwards = Math.atan2(y - middle[1], x - middle[0])
  for (const gap of NAME_GAPS) {
    for (let turn = 0; turn < NAME_TURNS; turn += 1) {
      const side = turn % 2 ? 1 : -1
      const angle = outwards + side * Math.ceil(turn / 2) * 2 * Math.PI / NAME_TURNS
      const [right, down] = [Math.cos(angle), Math.sin(angle)]
      const edge = Math.max(Math.abs(right), Math.abs(down)) // to the sides of a rectangle
      const place = [x + right / edge * (gap * scale + across), y + down / edge * (gap * scale + up)]
      yield [gap, place]
    }
  }
}

// What has to change in a figure's annotations, by its path.
function arrangeNames(figure) {
  const { xaxis, yaxis, font: usual } = figure._fullLayout
  const { annotations } = figure.layout
  const [width, height] = [xaxis._length, yaxis._length]
  const isOnPoint = findPoints(figure)
  const taken = [] // boxes of names
  const lines = [] // to their places
  const drawn = figure._fullData.filter(({ mode }) => mode === "lines").flatMap(({ x, y }) =>
    Array.from(x, (_, i) => [i, i + 1].map((end) => [xaxis.d2p(x[end]), yaxis.d2p(y[end])])))
    .filter((ends) => ends.flat().every(Number.isFinite))
  const changes = {}
  let n = 0
  for (const [i, label] of annotations.entries()) {
    const { name, text, font, x, y } = label
    if (!name) continue
    const start = [xaxis.d2p(x), yaxis.d2p(y)]
    const isSeen = start[0] >= 0 && start[0] <= width && start[1] >= 0 && start[1] <= height
    const written = measure(textOf(text), { ...usual, ...font, weight: "bold" })
    const half = [written / 2 + NAME_ROOM, LETTER_HEIGHT * font.size / 2]
    const isFree = ([across, down]) => {
      const box = boxAround(across, down, ...half)
      const isInside = box.left > 0 && box.top > 0 && box.right < width && box.bottom < height
      return isInside && !taken.some((other) => overlap(box, other) ||
          crosses(start, [across, down], other)) &&
        !drawn.some((line) => crosses(...line, box)) &&
        !lines.some((line) => crosses(...line, box) || meet(line, [start, [across, down]])) &&
        !isOnPoint(box)
    }
    let [place, least] = [undefined, name === SENTENCE ? Infinity : MOST_COST]
    if (isSeen && n < MOST_NAMES) {
      for (const [gap, one] of listPlaces(start, half, [width / 2, height / 2], font.size / 15)) {
        if (gap >= least || (gap > FURTHEST && least <= MOST_COST) || !isFree(one)) continue
        const cost = gap + costOfLine(start, one, isOnPoint)
        if (cost < least) [place, least] = [one, cost]
      }
    }
    const look = { visible: Boolean(place) || name === SENTENCE }
    if (place) {
      n += 1
      taken.push(boxAround(...place, ...half))
      lines.push([start, place])
      look.ax = Math.round(place[0] - start[0])
      look.ay = Math.round(place[1] - start[1])
    }
    for (const [key, value] of Object.entries(look)) {
      if (label[key] !== value) changes[`annotations[${i}].${key}`] = value
    }
  }
  return changes
}

// Place the names of a figure that has just been drawn.
async function placeNames(Plotly, figure) {
  if (figure._fullLayout?.scene) hideCrowdedNames(figure)
  if (!figure._fullLayout?.xaxis || !figure.layout.annotations?.some(({ name }) => name)) return
  if (figure.isPlacing) return
  figure.isPlacing = true
  try {
    for (let attempt = 0; attempt < 3; attempt += 1) { // where all is seen, names may widen it
      const changes = arrangeNames(figure)
      if (!Object.keys(changes).length) return
      await Plotly.relayout(figure, changes)
    }
  } finally {
    figure.isPlacing = false
  }
}

// Of names in a scene that overlap, the first stays; those that leave the figure go.
function hideCrowdedNames(figure) {
  const shown = []
  const { left, right } = figure.getBoundingClientRect()
  for (const label of figure.querySelectorAll(".annotation")) {
    const box = (label.querySelector(".annotation-text-g") ?? label).getBoundingClientRect()
    const isCrowded = box.left < left || box.right > right || shown.some((one) => overlap(box, one))
    label.style.visibility = isCrowded ? "hidden" : ""
    if (!isCrowded) shown.push(box)
  }
}
