// Maps of a corpus on a page of their own: colours to choose, a search that all maps share.
// The page holds its data as JSON in #data; nothing is loaded from anywhere.

const { texts, maps, faded } = JSON.parse(document.getElementById("data").textContent)
const folded = texts.map((text) => text.toLowerCase())
const config = { displaylogo: false, responsive: true, showSendToCloud: false }
const LINE = 60 // characters

const escapeHtml = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

// The beginning of a text in two lines, safe in a figure.
function hoverText(text) {
  const line = text.replace(/\s+/g, " ").trim()
  const space = line.lastIndexOf(" ", LINE)
  const cut = line.length <= LINE ? line.length : space > 0 ? space : LINE
  const rest = line.slice(cut).trim()
  const second = rest.length > LINE ? `${rest.slice(0, LINE - 1)}…` : rest
  return escapeHtml(line.slice(0, cut)) + (second && `<br>${escapeHtml(second)}`)
}

const hovers = texts.map(hoverText)
let found = null // numbers of the texts that are searched for

function tracesOf(map, group) {
  const flat = map.points.length === 2
  const parts = flat || !found
    ? [[group.at, map.opacity]]
    : [[group.at.filter((i) => !found.has(i)), faded], [group.at.filter((i) => found.has(i)), map.opacity]]
  return parts.map(([at, opacity], part) => {
    const trace = {
      showlegend: part === parts.length - 1,
      ...group.trace,
      type: flat ? "scattergl" : "scatter3d",
      mode: "markers",
      marker: { size: map.size, opacity, ...group.marker },
      text: at.map((i) => hovers[i]),
      hovertemplate: `%{text}${group.says ? `<br>${group.says}` : ""}<extra></extra>`,
    }
    map.points.forEach((values, axis) => {
      trace["xyz"[axis]] = at.map((i) => values[i])
    })
    if (group.values) trace.marker.color = at.map((i) => group.values[i])
    if (group.written) trace.hovertext = at.map((i) => group.written[i])
    if (flat && found) {
      trace.selectedpoints = at.flatMap((i, place) => (found.has(i) ? [place] : []))
      trace.unselected = { marker: { opacity: faded } }
    }
    return trace
  })
}

function draw(map, place) {
  const colour = document.getElementById(`colour-${place}`).value
  const { groups, tints } = map.colours[colour]
  const traces = groups.flatMap((group) => tracesOf(map, group))
  const layout = { ...structuredClone(map.layout), uirevision: "map" } // zoom stays, whatever is found
  layout.legend = { ...layout.legend, uirevision: colour }
  const names = layout.annotations ?? []
  layout.showlegend = !(tints && names.length) // coloured names say which cluster is which
  for (const name of tints ? names : []) {
    name.font.color = name.arrowcolor = tints[name.name] ?? "#777B80"
    name.font.shadow = "none"
  }
  Plotly.react(`map-${place}`, traces, layout, config)
}

const drawAll = () => maps.forEach(draw)

document.getElementById("search").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase()
  found = wanted ? new Set(folded.flatMap((text, i) => (text.includes(wanted) ? [i] : []))) : null
  const n = found?.size ?? 0
  const said = n === 1 ? "1 text" : `${n.toLocaleString("en")} texts`
  document.getElementById("found").textContent = found ? said : ""
  drawAll()
})
maps.forEach((map, place) => {
  document.getElementById(`colour-${place}`).addEventListener("change", () => draw(map, place))
})
drawAll()
for (const figure of document.querySelectorAll(".map")) {
  placeNames(Plotly, figure)
  figure.on("plotly_afterplot", () => placeNames(Plotly, figure))
}
