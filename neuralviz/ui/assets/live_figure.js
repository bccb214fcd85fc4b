// One persistent node a figure: Plotly.react brings it up to date, so zoom and hover stay.
// TEMPLATES, of light and of dark pages, and names.js are put in front of this file.

const STAGE_TIMES = 1.75 // 16 px become 28
const RESTS_AFTER = 150 // ms without another point under the pointer
const ZOOMS_AFTER = 100 // ms without another zoom
const TITLE_EDGE = 8 // px around a title
const CAPITALS = 0.7 // their height, in ems
const LINE_HEIGHT = 1.3 // of its letters
const TOOLS = { width: 290, height: 38 } // px of a map's tools
const BAR_FROM = 320 // px of height on the stage, with room for a colour bar below
const GREY = "#9A9FA5" // of what has no colour
const OTHERS = 2000 // place in the legend of categories without a colour
const WIDE = 520 // px, with room for a title beside the tools
const KEPT = 60_000 // ms that a picture can be saved
const BEGINS_WITHIN = 1000 // ms in which the page begins with what it was sent

function loadPlotly(path) {
  // Pages lie one level below the app's base path, as do Streamlit's own scripts.
  window.neuralvizPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = new URL(path, new URL(".", window.location.href))
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => {
      window.neuralvizPlotly = undefined
      reject(new Error("plotly.js could not be loaded; reload the page."))
    }
    document.head.append(script)
  })
  return window.neuralvizPlotly
}

// Made once a figure: with another configuration, Plotly.react would begin from nothing.
function configuration(node) {
  const unwanted = ["toImage", "resetCameraLastSave3d", "hoverClosest3d"]
  // A map begins with the middle of its points: one button shows all of them, another goes back.
  if (!node.spec.windows) unwanted.push("autoScale2d")
  return {
    ...(node.spec.windows ? { doubleClick: "autosize" } : {}),
    displaylogo: false,
    showSendToCloud: false, // what is drawn stays on this machine
    // Without a selection there are no tools: drag to zoom, double-click to zoom back.
    displayModeBar: Boolean(node.spec.selects),
    modeBarButtonsToRemove: unwanted,
  }
}

function roomOf(node) {
  const times = node.stageHeight ? STAGE_TIMES : 1
  return { width: node.clientWidth / times, height: (node.stageHeight || node.spec.layout.height) / times }
}

// A figure may say in layout.meta.from_width, as [[px, {"path.of.attribute": value}, px of height], …],
// what is different where there is room: there is less for the large letters of the stage.
function changesFor(node, { width, height } = roomOf(node)) {
  const all = node.figure.layout.meta?.from_width ?? []
  return all.filter(([least, , lowest = 0]) => width >= least && height >= lowest).map(([, changes]) => changes)
}

// Streamlit says how the page is, whoever chose it: the system, its menu or the settings.
function themeOf(node) {
  return getComputedStyle(node).colorScheme === "dark" ? "dark" : "light"
}

function change(layout, changes) {
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split(".")
    const last = keys.pop()
    keys.reduce((part, key) => (part[key] ??= {}), layout)[last] = value
  }
}

// All letters of a figure, as many times as large; what is data stays out of it.
function enlarge(part, times) {
  for (const [name, value] of Object.entries(part ?? {})) {
    if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) continue
    if (/font$/.test(name) && typeof value.size === "number") value.size *= times
    enlarge(value, times)
  }
}

// On the stage a figure is as high as its place there (stage.js says how high), its letters are
// large, and layout.meta.stage, or a trace's, as {"path.of.attribute": value}, says what else differs.
function putOnStage(node, layout) {
  layout.height = node.stageHeight
  const { meta, ...all } = layout // the template among them
  enlarge(all, STAGE_TIMES)
  layout.template.layout.margin.t *= STAGE_TIMES
  layout.margin &&= { ...layout.margin, t: (layout.margin.t ?? 44) * STAGE_TIMES }
  change(layout, node.figure.layout.meta?.stage ?? {})
}

// Entries of the legend by their names (in meta, where long ones may begin alike), and by what they
// are of; an address tells no names.
function digestsOf({ data, layout }) {
  const digestOf = (text) =>
    [...text].reduce((sum, letter) => Math.imul(sum ^ letter.codePointAt(0), 16777619), 2166136261)
  const seen = {}
  return data.map(({ name, meta, showlegend, legendgroup }) => {
    if (showlegend === false && !legendgroup) return ""
    const entry = [layout.legend?.uirevision, legendgroup, meta ?? name].join(" ")
    if (!legendgroup) seen[entry] = (seen[entry] ?? 0) + 1
    return (digestOf(`${entry} ${seen[entry] ?? ""}`) >>> 0).toString(36)
  })
}

function dataFor(node) {
  const digests = digestsOf(node.figure)
  const data = node.figure.data.map((trace, place) => ({ // copies, which plotly changes
    ...trace,
    ...(node.hiddenEntries.includes(digests[place]) ? { visible: "legendonly" } : {}),
  }))
  if (!node.stageHeight) return data
  // Of many categories, the rarer ones are one on the stage.
  const { n = 0, from } = node.figure.layout.meta?.others ?? {}
  const isOther = ({ legendrank }) => n > 0 && legendrank >= from && legendrank <= OTHERS
  const first = data.findIndex(isOther)
  return data.map((trace, place) => {
    const { textfont, insidetextfont, outsidetextfont, colorbar } = trace
    const letters = structuredClone({ textfont, insidetextfont, outsidetextfont, colorbar })
    enlarge(letters, STAGE_TIMES)
    const larger = JSON.parse(JSON.stringify(letters)) // without what is not there
    for (const [part, name] of [["marker", "size"], ["line", "width"]]) {
      if (typeof trace[part]?.[name] !== "number") continue
      larger[part] = { ...trace[part], [name]: trace[part][name] * STAGE_TIMES }
    }
    const hasNoRoom = colorbar?.orientation === "h" && node.stageHeight < BAR_FROM
    const drawn = { ...trace, ...larger, ...(hasNoRoom ? { showscale: false } : {}) }
    change(drawn, trace.meta?.stage ?? {})
    if (!isOther(trace)) return drawn
    const look = { ...drawn.marker, color: GREY, symbol: "circle" }
    const name = `other (${n.toLocaleString("en")} more)`
    return { ...drawn, marker: look, name, showlegend: place === first, legendrank: OTHERS }
  })
}

// A title takes as many lines as it needs, and is below the tools where it does not fit beside them.
function placeTitle(node, layout) {
  const { text = layout.title, font } = layout.title ?? {}
  if (typeof text !== "string" || !text) return
  const { layout: usual } = layout.template
  const size = font?.size ?? usual.title.font.size
  const widthOf = (html) => measure(textOf(html), { size, family: usual.font.family })
  const room = node.clientWidth - TITLE_EDGE
  const lines = wrapWords(text, (html) => widthOf(html) <= room)
  const hasTools = node.spec.selects && !node.stageHeight
  if (lines.length === 1 && !hasTools) return
  const titles = node.figure.layout.meta?.titles ?? [text] // of maps with frames of one height
  const widest = Math.max(...titles.map(widthOf))
  const isBeside = node.clientWidth >= WIDE && widest + TOOLS.width <= room
  const top = hasTools && !isBeside ? TOOLS.height : TITLE_EDGE
  const pad = { t: top + (lines.length > 1 ? CAPITALS * size : 0) } // plotly puts the first line higher
  const place = { yref: "container", y: 1, yanchor: "top", pad }
  layout.title = { ...(layout.title.text ? layout.title : {}), ...place, text: lines.join("<br>") }
  const height = Math.ceil(LINE_HEIGHT * size)
  const above = (layout.margin?.t ?? usual.margin.t) + height * (lines.length - 1)
  layout.margin = { ...layout.margin, t: above + top - TITLE_EDGE }
}

function layoutFor(node) {
  const layout = { ...structuredClone(node.figure.layout), ...node.spec.layout }
  layout.template = structuredClone(TEMPLATES[node.theme])
  for (const changes of changesFor(node)) change(layout, changes)
  if (node.stageHeight) putOnStage(node, layout)
  placeTitle(node, layout)
  if (node.begins) {
    const [left, right, bottom, top] = node.begins
    layout.xaxis = { ...layout.xaxis, range: [left, right], autorange: false }
    layout.yaxis = { ...layout.yaxis, range: [bottom, top], autorange: false }
  }
  for (const [name, seen] of Object.entries(node.zoomed ?? {})) {
    layout[name] = { ...layout[name], ...seen }
  }
  for (const part of node.returns ? [layout, layout.legend ?? {}] : []) {
    if ("uirevision" in part) part.uirevision = `${part.uirevision} ${node.returns}`
  }
  const view = `${node.revision} ${node.returns ?? ""}`
  if (node.isZoomed && node.viewed === view) { // what a person has zoomed to stays
    for (const name of ["xaxis", "yaxis"]) {
      const { range, autorange } = node.layout[name]
      layout[name] = { ...layout[name], range, autorange }
    }
  }
  node.viewed = view
  // A changed figure says itself what is selected: no lasso drawn on the last one stays.
  layout.selectionrevision = node.spec.digest
  if (window.matchMedia("(pointer: coarse)").matches && !layout.scene) {
    layout.dragmode = false // a finger on the figure scrolls the page; a scene it turns
  } else if (node.spec.selects) {
    layout.dragmode ??= "lasso"
  }
  return layout
}

// The address has what a person has zoomed to or turned, by axis or scene, and what is hidden in the
// legend; for this figure alone.
function readZoom(node) {
  node.zoomed = {}
  node.hiddenEntries = []
  node.keptZoom = {}
  node.zoomText = window.neuralvizAddress?.zoomOf(node.spec.place) ?? ""
  const [drawn, seen] = node.zoomText.split("~")
  if (drawn !== node.spec.drawn) return
  try {
    for (const [name, at] of Object.entries(JSON.parse(seen))) {
      if (/^[xy]axis\d*$/.test(name)) node.zoomed[name] = { range: at, autorange: false }
      if (/^scene\d*$/.test(name)) node.zoomed[name] = { camera: at }
      if (name === "hidden") node.hiddenEntries = at.filter((digest) => typeof digest === "string")
      else node.keptZoom[name] = at
    }
  } catch {
    [node.zoomed, node.hiddenEntries, node.keptZoom] = [{}, [], {}]
  }
  if (node.spec.windows) node.zooming = setTimeout(tellWindow, ZOOMS_AFTER, node)
}

function zoomOf(node) {
  const own = node.figure.layout
  const seen = {}
  for (const [name, part] of Object.entries(node._fullLayout)) {
    if (/^[xy]axis\d*$/.test(name) && !part.autorange) {
      if (String(part.range) !== String(own[name]?.range)) seen[name] = part.range
    } else if (/^scene\d*$/.test(name)) {
      seen[name] = part.camera
    }
  }
  return seen
}

function keepSeen(node) {
  const digests = digestsOf(node.drawn)
  const isHidden = (digest, place) => digest && node._fullData[place].visible === "legendonly"
  const others = node.hiddenEntries.filter((digest) => !digests.includes(digest)) // filtered out
  node.hiddenEntries = [...new Set([...others, ...digests.filter(isHidden)])]
  const seen = { ...node.keptZoom }
  if (node.hiddenEntries.length) seen.hidden = node.hiddenEntries
  const short = (_, value) => typeof value === "number" ? Number(value.toPrecision(5)) : value
  const isZoomed = Object.keys(seen).length
  node.zoomText = isZoomed ? `${node.spec.drawn}~${JSON.stringify(seen, short)}` : ""
  window.neuralvizAddress?.keepZoom(node.spec.place, node.zoomText)
}

// What depends on the width.
function fitOf({ title, margin, legend }) {
  return JSON.stringify([title, margin, legend])
}

async function draw(Plotly, node) {
  if (node.revision !== node.spec.layout.uirevision) { // another figure has a zoom of its own
    node.revision = node.spec.layout.uirevision
    node.begins = node.spec.window
    node.told = undefined
    node.isZoomed = false
    readZoom(node)
  }
  node.config ??= configuration(node)
  node.stageHeight = Number(node.dataset.stageHeight ?? 0)
  node.theme = themeOf(node)
  node.style.height = `${node.stageHeight || node.spec.layout.height}px`
  const hidesLegend = node.stageHeight && node.figure.layout.meta?.hides_legend
  node.toggleAttribute("data-hides-legend", Boolean(hidesLegend))
  const layout = layoutFor(node)
  node.fit = fitOf(layout)
  const legendOf = (figure) => figure.layout.legend?.uirevision
  const isOther = node.drawn && legendOf(node.drawn) !== legendOf(node.figure)
  node.drawn = node.figure
  await Plotly.react(node, dataFor(node), layout, node.config)
  node.drawnSize = `${node.stageHeight} ${node.clientWidth}` // for stage.js
  // Of other colours, other entries were hidden; those of an address that was gone back to stay.
  if (!isOther || !node.hiddenEntries.length) return
  const digests = digestsOf(node.drawn)
  node.hiddenEntries = node.hiddenEntries.filter((digest) => digests.includes(digest))
  keepSeen(node)
}

function plain(value) {
  return ArrayBuffer.isView(value) ? Array.from(value) : (value ?? null)
}

// Whether the page is at something, or may not have begun with what it was sent: what is sent then
// takes its place.
function isBusy(node) {
  const app = document.querySelector("[data-testid=stApp]")
  const isWaiting = performance.now() - node.sentAt < BEGINS_WITHIN
  return isWaiting || app?.dataset.testScriptState === "running"
}

// A hover waits until the page has done what it is at: there is never more than one on its way.
function tellHover(node, row) {
  if (isBusy(node)) {
    node.resting = setTimeout(tellHover, RESTS_AFTER, node, row)
  } else {
    node.send("hover", row)
  }
}

// What is seen: the sides of it; null for the whole figure.
function windowOf(node) {
  const { xaxis, yaxis } = node._fullLayout
  return xaxis.autorange || yaxis.autorange ? null : [...xaxis.range, ...yaxis.range]
}

// What a person has zoomed to, when the page has done what it is at: there is never more than one
// on its way.
function tellWindow(node) {
  if (!node.isConnected) return
  if (node.held || node.drawing || isBusy(node)) {
    node.zooming = setTimeout(tellWindow, RESTS_AFTER, node)
    return
  }
  const sides = windowOf(node)
  if (JSON.stringify(sides ?? "all") === JSON.stringify(node.told)) return
  node.told = sides ?? "all"
  node.send("window", { of: node.revision, sides })
}

// The lassos and boxes of a selection, as corners.
function areasOf({ selections = [] }) {
  return selections.map(({ type, path, x0, x1, y0, y1 }) => {
    if (type === "rect") return { x: [x0, x1, x1, x0], y: [y0, y0, y1, y1] }
    const corners = path.slice(1, -1).split("L").map((corner) => corner.split(",").map(Number))
    return { x: corners.map(([x]) => x), y: corners.map(([, y]) => y) }
  })
}

function listen(Plotly, node) {
  node.on("plotly_click", ({ points: [point] }) => {
    if (!node.spec.clicks) return
    node.send("click", {
      x: plain(point.x),
      y: plain(point.y),
      z: plain(point.z),
      curve: point.curveNumber,
      point: plain(point.pointNumber),
      customdata: plain(point.customdata),
    })
  })
  node.on("plotly_clickannotation", ({ annotation }) => {
    if (node.spec.clicks && annotation.name) node.send("click", { name: annotation.name })
  })
  node.on("plotly_afterplot", () => node.redrawn || placeNames(Plotly, node))
  node.on("plotly_selected", (selected) => {
    if (!node.spec.selects || !selected || node.redrawn) return // a person's doing alone
    if (node.spec.selects === "areas") node.send("areas", areasOf(selected))
    else node.send("select", selected.points.map((point) => point.customdata).filter(Number.isInteger))
  })
  node.on("plotly_deselect", () => {
    if (node.spec.selects) node.send(node.spec.selects === "areas" ? "areas" : "select", [])
  })
  node.onReturn = () => { // the browser's Back and Forward, which the page does first
    node.sentAt = performance.now()
    const before = node.zoomText
    readZoom(node)
    if (node.zoomText === before) return
    node.returns = (node.returns ?? 0) + 1
    node.stale = true
    drawLatest(Plotly, node)
  }
  window.addEventListener("popstate", node.onReturn)
  node.on("plotly_relayout", (change) => {
    if (node.redrawn) return // a person's doing alone
    const isZoom = Object.keys(change).some((name) => /range|camera/.test(name))
    if (isZoom) {
      node.keptZoom = zoomOf(node)
      keepSeen(node)
    }
    if (!node.spec.windows) return
    node.isZoomed ||= isZoom
    clearTimeout(node.zooming)
    node.zooming = setTimeout(tellWindow, ZOOMS_AFTER, node)
  })
  node.on("plotly_restyle", ([change]) => {
    if (!node.redrawn && "visible" in change) keepSeen(node)
  })
  node.on("plotly_hover", ({ points: [point] }) => {
    const row = point.customdata
    if (!node.spec.hovers || !Number.isInteger(row) || row === node.hovered) return
    if (node.movedAt < node.drawnAt) return // the figure has moved, not the pointer
    clearTimeout(node.resting)
    node.hovered = row
    node.resting = setTimeout(tellHover, RESTS_AFTER, node, row)
  })
  node.on("plotly_unhover", () => {
    clearTimeout(node.resting)
    node.hovered = undefined
  })
  node.addEventListener("pointermove", () => { node.movedAt = performance.now() })
  let width = node.clientWidth
  node.observer = new ResizeObserver(() => {
    if (!node.clientWidth || node.clientWidth === width) return
    width = node.clientWidth
    Plotly.Plots.resize(node)
    node.drawnSize = `${node.stageHeight} ${width}`
    if (fitOf(layoutFor(node)) === node.fit) return
    node.stale = true
    drawLatest(Plotly, node)
  })
  node.observer.observe(node)
  node.themes = new MutationObserver(() => {
    if (themeOf(node) === node.theme) return
    node.stale = true
    drawLatest(Plotly, node)
  })
  const app = document.querySelector("[data-testid=stApp]") // gets another class with a theme
  node.themes.observe(app, { attributeFilter: ["class"] })

  node.onStage = () => {
    if (Number(node.dataset.stageHeight ?? 0) === node.stageHeight) return
    node.style.visibility = "hidden" // until it has its new size
    node.stale = true
    drawLatest(Plotly, node)
  }
  window.addEventListener("neuralviz-stage", node.onStage)

  // A redraw would end a drag that is under way: it waits until the pointer is let go.
  node.addEventListener("pointerdown", () => {
    node.held = true
    const letGo = () => {
      node.held = false
      setTimeout(() => drawLatest(Plotly, node))
    }
    window.addEventListener("pointerup", letGo, { once: true })
    window.addEventListener("pointercancel", letGo, { once: true })
  })
}

async function drawLatest(Plotly, node) {
  if (node.drawing) return
  node.drawing = true
  try {
    while (node.stale && !node.held && node.isConnected) {
      node.stale = false
      await redraw(Plotly, node)
    }
  } finally {
    node.drawing = false
  }
}

async function redraw(Plotly, node) {
  // What else has changed on the page is painted first; a page that is not seen does not wait.
  await new Promise((resume) => {
    requestAnimationFrame(() => setTimeout(resume))
    setTimeout(resume, 100)
  })
  if (node.held) { // a drag has begun meanwhile
    node.stale = true
    return
  }
  const start = (node.drawnAt = performance.now())
  node.redrawn = true
  try {
    await draw(Plotly, node)
    await placeNames(Plotly, node)
    const { y, yref } = node.layout.legend ?? {} // where plotly saw the frame before it made room
    if (node.stageHeight && yref === "paper") await Plotly.relayout(node, { "legend.y": y })
  } finally {
    node.redrawn = false
    node.style.visibility = ""
  }
  if (!node.observer) {
    listen(Plotly, node)
    node.onStage() // which may have come or gone meanwhile
  }
  if (node.spec.windows) { // the page knows no zoom of the address
    node.told ??= Object.keys(node.zoomed).length ? "nothing" : windowOf(node) ?? "all"
  }
  // However fast the data move, half of the time is left to the rest of the page.
  await new Promise((resume) => setTimeout(resume, performance.now() - start))
}

// Browsers keep few WebGL contexts alive: those of a figure that is gone are given back at once.
function release(node) {
  const canvases = node.querySelectorAll("canvas")
  window.Plotly?.purge(node)
  for (const canvas of canvases) {
    const context = canvas.getContext("webgl2") ?? canvas.getContext("webgl")
    context?.getExtension("WEBGL_lose_context")?.loseContext()
  }
}

function leave(node) {
  clearTimeout(node.resting)
  clearTimeout(node.zooming)
  node.observer?.disconnect()
  node.themes?.disconnect()
  window.removeEventListener("neuralviz-stage", node.onStage)
  window.removeEventListener("popstate", node.onReturn)
  release(node)
}

async function savePicture(node, format, isDark) {
  const Plotly = await loadPlotly(node.spec.plotly)
  const { file, note } = await makePicture(Plotly, node, format, isDark ? "dark" : "light")
  const link = document.createElement("a")
  link.href = URL.createObjectURL(file)
  link.download = `${node.spec.name}${isDark ? "-dark" : ""}.${format}`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT)
  return note
}

export default function ({ parentElement, data, setTriggerValue }) {
  const node = parentElement.querySelector(".neuralviz-figure")
  const end = data.indexOf(10) // the first line says what about the figure behind it
  const read = (bytes) => JSON.parse(new TextDecoder().decode(bytes))
  node.spec = read(data.subarray(0, end))
  node.send = (name, value) => {
    if (name !== "hover") node.sentAt = performance.now()
    setTriggerValue(name, value)
  }
  node.savePicture = (format, isDark) => savePicture(node, format, isDark)
  node.style.height = `${node.stageHeight || node.spec.layout.height}px`
  node.setAttribute("aria-label", node.spec.alt)
  if (node.spec.digest !== node.digest) {
    node.digest = node.spec.digest
    node.figure = read(data.subarray(end + 1))
    node.stale = true
    loadPlotly(node.spec.plotly)
      .then((Plotly) => drawLatest(Plotly, node))
      .catch((error) => {
        node.digest = undefined
        node.textContent = error.message
      })
  }
  return () => leave(node) // when the figure leaves the page, not when its data change
}
