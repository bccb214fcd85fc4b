// A link to another page that is pressed from a field waits until what is typed there has been sent.
//
// Streamlit sends it when the field is left. A tap leaves the field and presses the link in one go,
// and what is sent last wins: the field's page would be drawn again, and the link lead nowhere.

const WAIT = 250 // ms
const FIELD = "textarea, input"
const LINK = "[data-testid=stSidebarNavLink]"

class Leaving {
  constructor() {
    this.left = -Infinity // when a field was left
    this.isSent = false
    document.addEventListener("focusout", (event) => this.onLeave(event), true)
    document.addEventListener("click", (event) => this.onClick(event), true)
  }

  onLeave(event) {
    if (event.target.matches?.(FIELD)) this.left = performance.now()
  }

  onClick(event) {
    const link = event.target.closest?.(LINK)
    const opensElsewhere = event.ctrlKey || event.metaKey || event.shiftKey
    if (!link || this.isSent || opensElsewhere || performance.now() - this.left > WAIT) return
    event.preventDefault()
    event.stopImmediatePropagation()
    setTimeout(() => this.follow(link), WAIT)
  }

  follow(link) {
    this.isSent = true
    link.click()
    this.isSent = false
  }
}

export default function () {
  window.neuralvizLeaving ??= new Leaving()
}
