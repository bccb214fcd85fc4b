// One persistent node a figure: Plotly.react brings it up to date, so zoom and hover stay.

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

function pictureButton(Plotly, node, format, icon) {
  return {
    name: `picture-${format}`,
    title: `Download as ${format.toUpperCase()}`,
    icon: Plotly.Icons[icon],
    click: () => {
      const page = getComputedStyle(node).getPropertyValue("--st-background-color")
      const layout = { ...node.layout, paper_bgcolor: page.trim() || "white" }
      const { width, height } = node.getBoundingClientRect()
      const options = { format, width, height, scale: 2, filename: node.spec.name }
      Plotly.downloadImage({ data: node.data, layout }, options)
    },
  }
}

// Made once a figure: with another configuration, Plotly.react would begin from nothing.
function configuration(Plotly, node) {
  return {
    displaylogo: false,
    modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
    modeBarButtonsToAdd: [
      pictureButton(Plotly, node, "png", "camera"),
      pictureButton(Plotly, node, "svg", "disk"),
    ],
  }
}

function draw(Plotly, node) {
  const { figure, layout } = node.spec
  Object.assign(figure.layout, layout)
  if (window.matchMedia("(pointer: coarse)").matches) {
    figure.layout.dragmode = false // a finger on the figure scrolls the page
  }
  node.config ??= configuration(Plotly, node)
  return Plotly.react(node, figure.data, figure.layout, node.config)
}

function plain(value) {
  return ArrayBuffer.isView(value) ? Array.from(value) : (value ?? null)
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
  let width = node.clientWidth
  node.observer = new ResizeObserver(() => {
    if (!node.clientWidth || node.clientWidth === width) return
    width = node.clientWidth
    Plotly.Plots.resize(node)
  })
  node.observer.observe(node)

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
  while (node.stale && !node.held && node.isConnected) {
    node.stale = false
    const start = performance.now()
    await draw(Plotly, node)
    if (!node.observer) listen(Plotly, node)
    // However fast the data move, half of the time is left to the rest of the page.
    await new Promise((resume) => setTimeout(resume, performance.now() - start))
  }
  node.drawing = false
}

export default function ({ parentElement, data, setTriggerValue }) {
  const node = parentElement.querySelector(".neuralviz-figure")
  node.spec = JSON.parse(new TextDecoder().decode(data))
  node.stale = true
  node.send = setTriggerValue
  node.style.height = `${node.spec.layout.height}px`
  node.setAttribute("aria-label", node.spec.alt)
  loadPlotly(node.spec.plotly)
    .then((Plotly) => drawLatest(Plotly, node))
    .catch((error) => {
      node.textContent = error.message
    })
  return () => {
    // Called when the figure leaves the page, not when its data change.
    node.observer?.disconnect()
    window.Plotly?.purge(node)
  }
}
