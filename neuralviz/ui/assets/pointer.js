// Points at what answers a question: frames it and scrolls to it, also when it comes later or moves
// because figures above it are drawn. It stops when the visitor scrolls, and goes on when the next
// one of several targets has come.

const LOOK = 200 // ms between two looks
const ACTS = ["wheel", "touchmove", "pointerdown", "keydown"]
const HEARD = { passive: true, capture: true } // also what a figure keeps to itself
const STILL = matchMedia("(prefers-reduced-motion: reduce)")
const ROOM = 24 // px between the card and the target

class Pointer {
  constructor(place) {
    this.place = place
    this.style = document.head.appendChild(document.createElement("style"))
    this.release = () => (this.isFree = true)
    for (const act of ACTS) window.addEventListener(act, this.release, HEARD)
    this.timer = setInterval(() => this.look(), LOOK)
  }

  point(selectors, isBare) {
    if (String(this.selectors) === String(selectors)) return
    this.selectors = selectors
    this.isBare = isBare
    this.shown = -1
    this.isFree = false
  }

  // The last target that is there, of those that are not faded: results of other texts do not answer.
  look() {
    const found = this.selectors.map((selector) => [...document.querySelectorAll(selector)].find(isSeen))
    const last = found.findLastIndex(Boolean)
    if (last < 0) return
    if (last !== this.shown) {
      this.shown = last
      this.isFree = false
    }
    if (!this.isBare) this.paint(this.selectors[last])
    const main = document.querySelector("[data-testid=stMain]")
    const isMoving = main.scrollTop !== this.before
    this.before = main.scrollTop
    if (this.isFree || isMoving) return
    const asked = document.querySelector(".st-key-asked")
    asked?.setAttribute("role", "status") // screen readers say it when it comes
    const card = asked?.getBoundingClientRect().bottom ?? 0
    const { top, bottom } = found[last].getBoundingClientRect()
    if (top >= card && bottom <= window.innerHeight) return
    const header = document.querySelector("[data-testid=stHeader]")?.getBoundingClientRect().bottom ?? 0
    const least = Math.max(main.getBoundingClientRect().top, header, card) + ROOM
    if (Math.abs(top - least) > 2) main.scrollBy({ top: top - least, behavior: STILL.matches ? "instant" : "smooth" })
  }

  // In the colours of the theme, which the page knows only where components are.
  paint(selector) {
    const { backgroundColor } = getComputedStyle(document.querySelector("[data-testid=stApp]"))
    const colour = getComputedStyle(this.place).getPropertyValue("--st-primary-color")
    const rules = `.st-key-asked { background: ${backgroundColor}; }
      html:not([data-stage]) ${selector} { outline: 3px solid ${colour}; outline-offset: 0.5rem;
        border-radius: 0.2rem; }`
    if (this.style.textContent !== rules) this.style.textContent = rules
  }

  end() {
    clearInterval(this.timer)
    for (const act of ACTS) window.removeEventListener(act, this.release, HEARD)
    this.style.remove()
  }
}

function isSeen(target) {
  const faded = target.closest("[class*='st-key-result-']")
  return target.getClientRects().length && (!faded || getComputedStyle(faded).opacity === "1")
}

export default function ({ parentElement, data }) {
  parentElement.pointer ??= new Pointer(parentElement)
  parentElement.pointer.point(data.at, data.bare)
  return () => {
    parentElement.pointer?.end()
    delete parentElement.pointer
  }
}
