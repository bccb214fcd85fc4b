// The parts of the menu of downloads that the browser makes: a figure's pictures, the link, and, for
// Python, what is on the page and in which order.

const LOOK = 500 // ms between two looks at the page
const SHOWN = 2500 // ms that a word on what was done is shown

function keysOnPage() {
  const keyed = document.querySelectorAll("[data-testid=stMain] [class*='st-key-']")
  const names = [...keyed].flatMap(({ classList }) => [...classList])
  return names.filter((name) => name.startsWith("st-key-")).map((name) => name.slice(7))
}

function makeButton(label, title, act) {
  const button = Object.assign(document.createElement("button"), { textContent: label, title })
  button.onclick = async () => {
    button.disabled = true
    try {
      await act()
    } finally {
      button.disabled = false
    }
  }
  return button
}

function makeNote() {
  const note = document.createElement("span")
  note.setAttribute("role", "status")
  return note
}

// Pages that are not served over HTTPS have no clipboard of their own: the link is selected instead.
async function copyLink(place, note) {
  const link = window.location.href
  try {
    await navigator.clipboard.writeText(link)
    note.textContent = "Copied."
  } catch {
    const field = Object.assign(document.createElement("input"), { value: link, readOnly: true })
    place.append(field)
    field.select()
    if (document.execCommand("copy")) {
      field.remove()
      note.textContent = "Copied."
    } else {
      note.textContent = "Press Ctrl+C:"
      return
    }
  }
  setTimeout(() => (note.textContent = ""), SHOWN)
}

function offerPage(place, setStateValue) {
  const note = makeNote()
  const label = document.createElement("label")
  const box = Object.assign(document.createElement("input"), { type: "checkbox" })
  box.checked = window.neuralvizDark ?? false
  box.onchange = () => (window.neuralvizDark = box.checked)
  label.append(box, " Dark pictures")
  const title = "The address of this page as it is"
  place.replaceChildren(makeButton("Copy link", title, () => copyLink(place, note)), label, note)
  const tell = () => {
    const keys = keysOnPage()
    if (String(keys) === place.told) return
    place.told = String(keys)
    setStateValue("seen", keys)
  }
  place.looking = setInterval(tell, LOOK)
  tell()
}

function offerPictures(place, { figure, label }) {
  const note = makeNote()
  const save = async (format) => {
    note.textContent = "Drawing …"
    const node = document.querySelector(`.st-key-${figure} .neuralviz-figure`)
    try {
      note.textContent = (await node?.savePicture(format, window.neuralvizDark ?? false)) ?? ""
      if (!node) note.textContent = "This figure has left the page."
    } catch (error) {
      note.textContent = `The picture could not be drawn: ${error.message}`
    }
  }
  const buttons = ["PNG", "SVG"].map((format) =>
    makeButton(format, `${label} as ${format}`, () => save(format.toLowerCase())),
  )
  const name = Object.assign(document.createElement("span"), { textContent: label, title: label })
  place.replaceChildren(name, ...buttons, note)
}

export default function ({ parentElement, data, setStateValue }) {
  const place = parentElement.querySelector(".neuralviz-downloads")
  const shown = JSON.stringify(data)
  if (place.shown !== shown) {
    place.shown = shown
    if (data.figure) offerPictures(place, data)
    else offerPage(place, setStateValue)
  }
  return () => {
    clearInterval(place.looking)
    place.shown = undefined
  }
}
