// A figure as a picture of 1920 × 1080: its title above, its legend and settings below, each with room
// of its own. It is drawn off-screen, in letters that are as wide on every machine.

const PICTURE = { width: 1920, height: 1080, edge: 24 } // px
const PICTURE_FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
const PICTURE_SCALES = [1.6, 1.4, 1.2, 1, 0.8] // the largest letters that leave each other room
const HEADING = { size: 22, line: 29, weight: "bold", family: PICTURE_FONT } // px
const SETTINGS = { size: 13, line: 18, weight: "normal", family: PICTURE_FONT }
const MOST_VECTOR = 20_000 // points; programs open a file with more of them slowly
const FEW_NAMES = 8
const NAME_LENGTHS = [60, 28] // characters of few names in a legend, and of many
const TOUCHING = { across: 2, up: 4 } // px of letters' boxes that are empty

// Words in lines that fit.
function wrapWords(text, fits) {
  const lines = []
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`
    if (lines.length && fits(longer)) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}

// Lines of at most so many px; what has no blanks is cut.
function wrapLines(text, letters, width) {
  const fits = (line) => measure(line, letters) <= width
  return wrapWords(text, fits).flatMap((line) => {
    const parts = [""]
    for (const letter of line) {
      if (parts.at(-1) && !fits(parts.at(-1) + letter)) parts.push("")
      parts[parts.length - 1] += letter
    }
    return parts
  })
}

function shortenName(name, length) {
  const letters = [...textOf(name)]
  if (letters.length <= length) return name
  const short = `${letters.slice(0, length - 1).join("").trimEnd()}…`
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
}

function countPoints(node) {
  const traces = (node._fullData ?? []).filter(({ type }) => type === "scattergl")
  return traces.reduce((n, { x }) => n + (x?.length ?? 0), 0)
}

// The figure's data as the page shows them; points as vector graphics where they are not too many.
function pictureData(node, isVector) {
  const named = node.figure.data.filter(({ name, showlegend }) => name && showlegend !== false)
  const length = NAME_LENGTHS[named.length > FEW_NAMES ? 1 : 0]
  return node.figure.data.map((trace, i) => ({
    ...trace,
    ...(trace.name ? { name: shortenName(trace.name, length) } : {}),
    ...(trace.type === "scattergl" && isVector ? { type: "scatter" } : {}),
    visible: node._fullData?.[i]?.visible ?? true, // hidden in the legend
  }))
}

// The figure's layout without its title, as zoomed or turned on the page.
function pictureLayout(node, look) {
  const { title, ...layout } = structuredClone(node.figure.layout)
  layout.template = structuredClone(TEMPLATES[look.theme])
  for (const changes of changesFor(node, look)) change(layout, changes)
  change(layout, layout.meta?.picture ?? {}) // as layout.meta.stage
  delete layout.title
  layout.template.layout.yaxis.ticklabelstandoff = 5 // the first labels of two axes keep apart
  for (const [name, now] of Object.entries(node.layout ?? {})) {
    if (/^[xy]axis\d*$/.test(name)) {
      const { autorange, range } = now
      const axis = layout[name]
      if (!autorange && range) layout[name] = { ...axis, autorange, range: [...range] }
      else if (axis?.range) layout[name] = { ...axis, autorange, range: undefined }
    } else if (/^scene\d*$/.test(name) && now.camera) {
      layout[name] = { ...layout[name], camera: now.camera }
    }
  }
  const legend = { ...layout.legend }
  delete legend.entrywidth // in px of the page's letters
  if (legend.orientation !== "v") {
    Object.assign(legend, { x: 0, y: 0, yref: "container", yanchor: "bottom", maxheight: 0.6 })
  }
  const { width, height } = look
  // What is above and below the plot on the page is elsewhere here.
  const { b, ...margin } = { ...layout.margin, t: Math.max(8, (layout.margin?.t ?? 44) - 36) }
  const font = { ...layout.font, family: PICTURE_FONT }
  return { ...layout, legend, margin, font, width, height, autosize: false }
}

// Boxes of what is written in a figure, but for letters that are aslant.
function findTexts(holder) {
  const origin = holder.getBoundingClientRect()
  return [...holder.querySelectorAll("text")].flatMap((text) => {
    const box = text.getBoundingClientRect()
    const { a, b } = text.getScreenCTM() ?? { a: 1, b: 0 }
    const isAslant = Math.abs(a * b) > 0.01
    if (!box.width || isAslant || !text.textContent.trim()) return []
    const [left, top] = [box.left - origin.left, box.top - origin.top]
    const isOfLegend = Boolean(text.closest(".legend"))
    return [{ left, top, right: left + box.width, bottom: top + box.height, isOfLegend }]
  })
}

// How many px what is written reaches over each side, or down to a legend that is below.
function findOverflow(holder) {
  const { width, height, legend } = holder._fullLayout
  const texts = findTexts(holder)
  const legendTop = Math.min(...texts.filter(({ isOfLegend }) => isOfLegend).map(({ top }) => top))
  const floor = legend?.orientation === "h" ? Math.min(height, legendTop - 6) : height
  const reach = (beyond, among = texts) => Math.max(0, ...among.map(beyond))
  const others = texts.filter(({ isOfLegend }) => !isOfLegend)
  return {
    l: reach(({ left }) => -left),
    r: reach(({ right }) => right - width),
    t: reach(({ top }) => -top),
    b: reach(({ bottom }) => bottom - floor, others),
  }
}

async function fitMargins(Plotly, holder) {
  for (let attempt = 0; attempt < 4; attempt += 1) {
    const sides = Object.entries(findOverflow(holder)).filter(([, px]) => px > 0.5)
    if (!sides.length) return
    const size = holder._fullLayout._size
    const wider = sides.map(([side, px]) => [`margin.${side}`, size[side] + Math.ceil(px) + 1])
    await Plotly.relayout(holder, Object.fromEntries(wider))
  }
}

// Texts on each other or beyond a side, and entries that the legend has no room for.
function countCollisions(holder) {
  const texts = findTexts(holder)
  const { width, height } = holder._fullLayout
  const isCut = ({ left, right, top, bottom }) =>
    left < -1 || top < -1 || right > width + 1 || bottom > height + 1
  const overlap = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > TOUCHING.across &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > TOUCHING.up
  const pairs = texts.reduce((n, a, i) => n + texts.slice(i + 1).filter((b) => overlap(a, b)).length, 0)
  const bar = holder.querySelector(".legend .scrollbar")
  const isScrolled = Boolean(bar?.getBoundingClientRect().height)
  return texts.filter(isCut).length + pairs + (isScrolled ? 1 : 0)
}

function makeElement(name, attributes, children = []) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  element.append(...children)
  return element
}

function makeLines(lines, top, letters, fill) {
  const spans = lines.map((line, i) => {
    const y = top + letters.line * i + letters.size
    return makeElement("tspan", { x: PICTURE.edge, y }, [line])
  })
  const look = { "font-family": PICTURE_FONT, "font-size": letters.size, "font-weight": letters.weight }
  return makeElement("text", { ...look, fill }, spans)
}

// One try with letters of a size: the picture, and how many texts are in each other's way.
async function arrangePicture(Plotly, node, { scale, theme, isVector }) {
  const { edge } = PICTURE
  const [width, height] = [PICTURE.width / scale, PICTURE.height / scale]
  const { font, hoverlabel } = TEMPLATES[theme].layout
  const title = node.figure.layout.title?.text ?? node.figure.layout.title ?? node.spec.title
  const heading = title ? wrapLines(textOf(title), HEADING, width - 2 * edge) : []
  const settings = node.spec.footer ? wrapLines(node.spec.footer, SETTINGS, width - 2 * edge) : []
  const top = edge + (heading.length ? HEADING.line * heading.length + 8 : 0)
  const below = edge + (settings.length ? SETTINGS.line * settings.length + 10 : 0)
  const look = { theme, width: width - 2 * edge, height: height - top - below }
  const holder = document.body.appendChild(document.createElement("div"))
  holder.style.cssText = `position: fixed; left: -9999px; top: 0; width: ${look.width}px`
  try {
    const layout = pictureLayout(node, look)
    await Plotly.newPlot(holder, pictureData(node, isVector), layout, { staticPlot: true })
    await fitMargins(Plotly, holder)
    await placeNames(Plotly, holder)
    const options = { format: "svg", width: look.width, height: look.height, imageDataOnly: true }
    const drawn = await Plotly.toImage(holder, options)
    const plot = new DOMParser().parseFromString(drawn, "image/svg+xml").documentElement
    for (const [name, value] of Object.entries({ x: edge, y: top })) plot.setAttribute(name, value)
    plot.removeAttribute("style") // a background of its own
    const parts = [
      makeElement("rect", { width, height, fill: hoverlabel.bgcolor }),
      plot,
      makeLines(heading, edge, HEADING, font.color),
      makeLines(settings, height - below + 10, SETTINGS, theme === "dark" ? "#A9AFB5" : "#5A6169"),
    ].filter((part) => part.childNodes.length || part.tagName === "rect")
    const size = { width: PICTURE.width, height: PICTURE.height, viewBox: `0 0 ${width} ${height}` }
    const svg = new XMLSerializer().serializeToString(makeElement("svg", size, parts))
    return { svg, n: countCollisions(holder) }
  } finally {
    release(holder)
    holder.remove()
  }
}

async function rasterize(svg) {
  const image = new Image()
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }))
  try {
    image.src = address
    await image.decode()
    const canvas = Object.assign(document.createElement("canvas"), PICTURE)
    canvas.getContext("2d").drawImage(image, 0, 0, PICTURE.width, PICTURE.height)
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"))
  } finally {
    URL.revokeObjectURL(address)
  }
}

// The picture as a file, and a note where part of a vector file is none.
async function makePicture(Plotly, node, format, theme) {
  const n = countPoints(node)
  const isVector = n <= MOST_VECTOR
  let best
  for (const scale of PICTURE_SCALES) {
    const attempt = await arrangePicture(Plotly, node, { scale, theme, isVector })
    if (!best || attempt.n < best.n) best = attempt
    if (!best.n) break
  }
  if (format === "png") return { file: await rasterize(best.svg), note: "" }
  const isScene = node._fullData.some(({ type }) => /3d$/.test(type))
  const what = isScene ? "Scenes" : `${n.toLocaleString("en")} points`
  const note = isScene || !isVector ? `${what} are a bitmap in the SVG; its texts are vectors.` : ""
  return { file: new Blob([best.svg], { type: "image/svg+xml" }), note }
}
