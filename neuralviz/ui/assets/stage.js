// The stage: a page without its controls, one slide at a time, as large as the screen.
// Slides are the containers that Python's `slide` makes; no widget changes, and no script runs.

const SLIDE = "[class*='st-key-slide-']"
const ASKED_FOR = "[class*='st-key-on-stage-']" // controls; those of `on_stage`
const CONTENT = ".neuralviz-figure, [data-testid='stMarkdown'], [data-testid='stText'], " +
  "[data-testid='stHtml'], [data-testid='stDataFrame'], [data-testid='stTable'], [data-testid='stAlert'], " +
  "[data-testid='stProgress']"
const KEPT = "neuralviz-stage" // in the tab's storage: the stage outlives a reload
const FORWARD = ["ArrowRight", "ArrowDown", "PageDown", " "]
const BACKWARD = ["ArrowLeft", "ArrowUp", "PageUp"]
const PLACE_HEIGHT = 44 // px at the foot of a slide, where its number is shown
const LEAST_HEIGHT = 160 // px of a figure
const SETTLED = 150 // ms after the page has changed
const IDLE = 2000 // ms without the mouse, then the place fades
const MOST_HELD = 8000 // ms that a slide stays in sight while the next one is drawn
const BEGINS_WITHIN = 500 // ms in which the page begins with what a key has asked of it
const LOOKS = 50 // ms between two looks at what is drawn
const ROW_HEIGHT = 37 // px of a table's rows, before it is enlarged
const MORE_HEIGHT = 40 // px of the line below a table that is cut

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable='true']")
}

function keyOf(slide) {
  return [...slide.classList].find((name) => name.startsWith("st-key-slide-"))
}

// What a slide shows, whichever run shows it: the next run's slide takes its place.
function nameOf(key) {
  return key?.replace(/-(run-\d+|recorded)-/, "-")
}

function placeOf(key, slides) {
  return slides.findIndex((slide) => nameOf(keyOf(slide)) === nameOf(key))
}

// Of a page with steps, the step first, and the slide only where it has several.
function placeInWords(number, n) {
  const step = document.querySelector("[class*='st-key-stage-step-']")
  const [, at, all] = step?.className.match(/st-key-stage-step-(\d+)-(\d+)/) ?? []
  const slide = `${number} / ${n}`
  if (!step) return slide
  return n > 1 ? `${at} / ${all} · ${slide}` : `${at} / ${all}`
}

// Whether its figures have been drawn in the size that they have on the stage, and are not still to come.
function isDrawn(slide) {
  const figures = [...slide.querySelectorAll(".neuralviz-figure")].filter((one) => one.offsetParent)
  if (!figures.length && slide.querySelector("[data-testid=stProgress]")) return false
  return figures.every((one) => one.drawnSize === `${one.dataset.stageHeight} ${one.clientWidth}`)
}

// What a slide looks like, without what makes it change: with names of its own, since its figures
// are cut out by those of its parts.
function copyOf(slide) {
  const copy = document.createElement("div")
  copy.className = "neuralviz-stage-copy"
  copy.inert = true
  copy.append(slide.cloneNode(true))
  for (const part of copy.querySelectorAll("*")) {
    for (const { name, value } of part.attributes) {
      if (name === "id") part.id = `copy-${value}`
      else if (value.includes("url(")) part.setAttribute(name, value.replace(/url\("?#/g, "$&copy-"))
    }
  }
  const canvases = copy.querySelectorAll("canvas")
  for (const [i, canvas] of [...slide.querySelectorAll("canvas")].entries()) {
    if (canvas.width && canvas.height) canvases[i].getContext("2d").drawImage(canvas, 0, 0)
  }
  const { background, padding } = getComputedStyle(slide)
  copy.firstElementChild.style.cssText =
    `${ON_STAGE} background: ${background}; padding: ${padding}; visibility: visible; opacity: 1`
  for (const button of copy.querySelectorAll("button")) button.remove() // no key may find them
  return copy
}

// Of the page, as the menu has it.
function pageName() {
  return document.querySelector("[data-testid=stSidebarNavLink][aria-current=page] p")?.textContent ?? ""
}

function press(name) {
  const button = document.querySelector(`.st-key-${name} button:not([disabled])`)
  button?.click()
  return Boolean(button)
}

function hasContent(slide) {
  return [...slide.querySelectorAll(CONTENT)].some((part) => part.getBoundingClientRect().height)
}

// The menu of a page's further views, one of which is its last slide: as many options as are shown on
// the stage, and the chosen one.
function findViews() {
  const menu = document.querySelector("[class*='st-key-views-']")
  const [, n] = menu?.className.match(/st-key-views-\S+-(\d+)(?=\s|$)/) ?? []
  const options = [...(menu?.querySelectorAll("[role='radio']") ?? [])].slice(0, n)
  return { options, at: options.findIndex((option) => option.getAttribute("aria-checked") === "true") }
}

function isView(slide) {
  return Boolean(slide) && keyOf(slide).endsWith("-view")
}

// Whether it is what the tour says.
function isSaid(slide) {
  return keyOf(slide) === "st-key-slide-tour"
}

// Whether a page gets more slides: a run goes on, or there is no more than what the tour says.
function moreToCome(slides) {
  const isFirst = slides.length === 1 && isSaid(slides[0])
  return isFirst || Boolean(document.querySelector("[class*='st-key-'][class*='-stop-'] button"))
}

class Stage {
  constructor() {
    this.shown = undefined // class of the slide
    this.wanted = undefined // name of the slide that was asked for
    this.page = undefined // that it was asked for on
    this.isAwaiting = false // the next slide
    this.laidOut = new Set() // classes of the slides that have the size of the stage
    this.style = document.head.appendChild(document.createElement("style"))
    this.place = document.body.appendChild(document.createElement("div"))
    this.place.className = "neuralviz-stage-place"
    this.place.hidden = true
    this.place.addEventListener("click", () => this.leave())
    document.addEventListener("keydown", (event) => this.onKey(event), true)
    const choose = (event) => {
      if (this.isOn && event.target.closest?.("[role=option]")) this.leaveField()
    }
    document.addEventListener("click", choose, true)
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement) this.leave() // Escape went to the browser
    })
    window.addEventListener("resize", () => this.soon())
    window.addEventListener("mousemove", () => this.showPlace())
    new MutationObserver(() => this.soon()).observe(document.body, {
      childList: true,
      subtree: true,
    })
    const asked = new URLSearchParams(window.location.search).has("stage") // by a link
    if (asked || sessionStorage.getItem(KEPT)) this.enter()
  }

  get isOn() {
    return "stage" in document.documentElement.dataset
  }

  slides() {
    const all = [...document.querySelectorAll(SLIDE)]
    return all.filter((slide) => !slide.closest("[hidden], .neuralviz-stage-copy") && hasContent(slide))
  }

  enter() {
    document.activeElement?.blur?.()
    document.documentElement.dataset.stage = ""
    sessionStorage.setItem(KEPT, "on")
    document.documentElement.requestFullscreen?.().catch(() => {}) // not without a key or a click
    this.arrange()
    this.showPlace()
  }

  leave() {
    if (!this.isOn) return
    delete document.documentElement.dataset.stage
    sessionStorage.removeItem(KEPT)
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {})
    this.style.textContent = ""
    this.laidOut.clear()
    this.letGo()
    this.place.hidden = true
    findTables(document).forEach(freeTable)
    for (const figure of document.querySelectorAll(".neuralviz-figure")) {
      delete figure.dataset.stageHeight
    }
    this.tell()
  }

  tell() {
    window.dispatchEvent(new Event("neuralviz-stage"))
  }

  // Once the field has done with what was typed, the arrow keys change slides again.
  leaveField() {
    setTimeout(() => document.activeElement?.blur?.(), SETTLED) // a list gives it the focus back
  }

  onKey(event) {
    if (this.isOn && (event.ctrlKey || event.metaKey) && event.key === "Enter") this.leaveField()
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (isTyping(event.target)) {
      const isDone = event.key === "Enter" && event.target.tagName === "INPUT"
      if (this.isOn && (isDone || event.key === "Escape")) this.leaveField()
      return
    }
    if (!this.isOn) {
      if (event.key.toLowerCase() !== "s") return
      this.enter()
    } else if (event.key === "Escape" || event.key.toLowerCase() === "s") {
      this.leave()
    } else if (event.key === " " && event.target.matches?.("button:focus-visible")) {
      return // the button that somebody has gone to with the keyboard is pressed
    } else if (FORWARD.includes(event.key)) {
      this.go(1)
    } else if (BACKWARD.includes(event.key)) {
      this.go(-1)
    } else {
      return
    }
    event.preventDefault()
    event.stopPropagation()
  }

  // To the next slide; behind the last one, to the page's next step or the tour's next stop. While
  // the page is still being made its next slide is awaited, unless one presses again.
  go(by) {
    const slides = this.slides()
    const at = placeOf(this.shown, slides) + by
    const views = findViews()
    const view = isView(slides[at - by]) ? views.options[views.at + by] : undefined
    if (view) {
      this.hold(true)
      view.click()
    } else if (at >= 0 && at < slides.length) {
      const first = isView(slides[at]) && views.at ? views.options[0] : undefined // views are in order
      this.isAwaiting = false
      this.hold(Boolean(first))
      this.wanted = nameOf(keyOf(slides[at]))
      first?.click()
      this.arrange()
    } else {
      const way = by > 0 ? "next" : "back"
      this.isAwaiting = by > 0 && !this.isAwaiting && moreToCome(slides)
      if (this.isAwaiting) return
      this.hold(true)
      if (press(`stage-${way}`) || press(`tour-${way}`)) this.clear()
      else this.letGo()
    }
    this.showPlace()
  }

  // What is seen stays in sight until what follows is drawn, which may need another run of the page.
  hold(isMadeAnew) {
    const slide = this.shown && document.querySelector(`.${this.shown}:not(.neuralviz-stage-copy *)`)
    if (!slide) return
    if (!this.copy) document.querySelector("[data-testid=stApp]").append((this.copy = copyOf(slide)))
    this.heldSince = performance.now()
    this.isMadeAnew = isMadeAnew
    clearTimeout(this.looking)
    this.looking = setTimeout(() => this.look())
  }

  look() {
    const age = performance.now() - this.heldSince
    const app = document.querySelector("[data-testid=stApp]")
    const slide = this.shown && document.querySelector(`.${this.shown}:not(.neuralviz-stage-copy *)`)
    const isOver = app.dataset.testScriptState !== "running"
    const isMade = age > BEGINS_WITHIN && (isOver || !slide?.querySelector("[data-stale=true]"))
    const isReady = slide && (isMade || !this.isMadeAnew) && isDrawn(slide)
    if (isReady || age > MOST_HELD) this.letGo()
    else this.looking = setTimeout(() => this.look(), LOOKS)
  }

  letGo() {
    clearTimeout(this.looking)
    this.copy?.remove()
    this.copy = undefined
  }

  // Nothing is shown until the next slides are there.
  clear() {
    this.shown = this.wanted = undefined
    this.style.textContent = ""
    this.laidOut.clear()
    document.documentElement.dataset.stage = ""
  }

  soon() {
    if (!this.isOn) return
    clearTimeout(this.waiting)
    this.waiting = setTimeout(() => this.arrange(), SETTLED)
  }

  // The slide covers the page, and the next one, once it is drawn, is laid out behind it.
  arrange() {
    if (!this.isOn) return
    const slides = this.slides()
    const slide = this.nextOf(slides)
    if (!slide) return
    this.shown = keyOf(slide)
    this.wanted ??= nameOf(this.shown)
    const app = document.querySelector("[data-testid=stApp]")
    const ground = getComputedStyle(app).backgroundColor
    if (document.documentElement.dataset.stage !== this.shown) {
      document.documentElement.dataset.stage = this.shown
    }
    const next = isDrawn(slide) ? slides[slides.indexOf(slide) + 1] : undefined
    for (const one of [slide, ...(next ? [next] : [])]) this.laidOut.add(keyOf(one))
    const laidOut = slides.filter((one) => this.laidOut.has(keyOf(one)))
    const foot = this.footHeight()
    const names = laidOut.map((one) => `.${keyOf(one)}`).join(", ")
    const rule = `${names} { ${ON_STAGE} background: ${ground};
      padding-bottom: ${foot + PLACE_HEIGHT}px; opacity: 0; pointer-events: none; }
      .${this.shown} { visibility: visible; opacity: 1; pointer-events: auto; }
      html[data-stage] ${ASKED_FOR} { background: ${ground}; }`
    const isNew = this.style.textContent !== rule
    if (isNew) this.style.textContent = rule
    const differs = [slide, ...(next ? [next] : [])].map((one) => this.layOut(one)).some(Boolean)
    if (isNew || differs) this.tell()
    const { options, at } = findViews()
    const n = slides.length + Math.max(0, options.length - 1)
    const number = slides.indexOf(slide) + 1 + (isView(slide) ? Math.max(0, at) : 0)
    const place = [pageName(), placeInWords(number, n)].filter(Boolean).join(" · ")
    this.place.style.bottom = `${foot + 10}px`
    if (this.place.textContent !== place) this.place.textContent = place // else the observer sees it, and so on
  }

  // Whether a figure gets another height.
  layOut(slide) {
    fitTables(slide)
    const figures = [...slide.querySelectorAll(".neuralviz-figure")].filter((one) => one.offsetParent)
    const heights = this.heightsOf(slide, figures)
    const differs = figures.some((one, i) => Number(one.dataset.stageHeight) !== heights[i])
    figures.forEach((figure, i) => (figure.dataset.stageHeight = heights[i]))
    return differs
  }

  // The slide that was asked for; while the page is made anew, or a run has not come so far, it is
  // gone, and the page's first figures stand in for it.
  nextOf(slides) {
    if (this.page !== window.location.pathname) this.wanted = undefined
    this.page = window.location.pathname
    let at = placeOf(this.wanted, slides)
    if (this.isAwaiting && slides[at + 1]) {
      this.isAwaiting = false
      at += 1
    }
    if (slides[at]) this.wanted = nameOf(keyOf(slides[at]))
    const first = this.wanted ? slides.find((one) => !isSaid(one)) : undefined
    return slides[at] ?? first ?? slides[0]
  }

  // Of the controls at the foot of the slides.
  footHeight() {
    const controls = [...document.querySelectorAll(ASKED_FOR)].filter((one) => !one.closest(SLIDE))
    const heights = controls
      .filter((one) => getComputedStyle(one).position === "fixed")
      .map((one) => Math.ceil(one.getBoundingClientRect().height))
    return Math.max(0, ...heights)
  }

  // Rows of figures share what words leave of the height as they share that of the page.
  heightsOf(slide, figures) {
    const before = figures.map((figure) => figure.style.height)
    for (const figure of figures) figure.style.height = `${LEAST_HEIGHT}px`
    const tops = figures.map((figure) => Math.round(figure.getBoundingClientRect().top))
    const rows = {}
    figures.forEach(({ spec }, i) => {
      rows[tops[i]] = Math.max(rows[tops[i]] ?? 1, spec?.layout.height ?? 1)
    })
    const shares = Object.values(rows)
    const room = window.innerHeight - (contentHeight(slide) - shares.length * LEAST_HEIGHT)
    figures.forEach((figure, i) => (figure.style.height = before[i]))
    const all = shares.reduce((sum, share) => sum + share, 0)
    return tops.map((top) => Math.max(LEAST_HEIGHT, Math.floor(room * rows[top] / all)))
  }

  showPlace() {
    if (!this.isOn) return
    this.place.hidden = false
    clearTimeout(this.idle)
    delete this.place.dataset.idle
    this.idle = setTimeout(() => (this.place.dataset.idle = ""), IDLE)
  }
}

const ON_STAGE = `position: fixed !important; inset: 0; z-index: 1000000; overflow: auto;
  width: 100vw !important; max-width: none !important; height: 100vh; box-sizing: border-box;
  padding: 2.5vh 3vw; flex-wrap: nowrap;`

function findTables(place) {
  return [...place.querySelectorAll("[data-testid=stDataFrame]")]
}

function freeTable(table) {
  table.style.maxHeight = ""
  delete table.parentElement.dataset.more
}

// Tables end with a whole row, before the slide does; those that are cut say how many rows follow.
function fitTables(slide) {
  const tables = findTables(slide)
  tables.forEach(freeTable)
  const excess = Math.max(0, contentHeight(slide) - window.innerHeight)
  const boxes = tables.map((table) => table.getBoundingClientRect())
  const nRows = new Set(boxes.map(({ top }) => Math.round(top))).size
  const room = Math.max(...boxes.map(({ height }) => height)) - excess / nRows
  tables.forEach((table, i) => {
    const { zoom } = getComputedStyle(table)
    const fit = (height) => Math.max(2, Math.floor(height / zoom / ROW_HEIGHT)) // rows, and the head
    const n = Number(table.querySelector("[aria-rowcount]")?.getAttribute("aria-rowcount"))
    const height = Math.min(room, boxes[i].height)
    const nShown = n > fit(height) ? fit(height - MORE_HEIGHT) : fit(room)
    if (n > nShown) table.parentElement.dataset.more = `${(n - nShown).toLocaleString("en")} more`
    table.style.maxHeight = `${nShown * ROW_HEIGHT + 1}px`
  })
}

function contentHeight(slide) {
  const { paddingTop, paddingBottom } = getComputedStyle(slide)
  const boxes = [...slide.children].map((child) => child.getBoundingClientRect())
  const seen = boxes.filter((box) => box.height)
  const top = Math.min(...seen.map((box) => box.top))
  const bottom = Math.max(...seen.map((box) => box.bottom))
  return bottom - top + parseFloat(paddingTop) + parseFloat(paddingBottom)
}

export default function ({ parentElement }) {
  window.neuralvizStage ??= new Stage()
  const button = parentElement.querySelector("button")
  button.onclick = () => window.neuralvizStage.enter()
}
