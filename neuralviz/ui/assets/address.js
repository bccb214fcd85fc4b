// The browser's history has an entry for each thing that a person does, and none for what a page
// adds to its address by itself. Streamlit does it the other way round.

window.neuralvizAddress ??= (() => {
  const { pushState, replaceState } = history
  const BESIDE = ["run"] // names what is shown and decides nothing: never an entry
  const OWN = "zoom-" // begins what the browser alone knows; the page leaves it as it is
  let isAsked = false // by a person, since the last entry

  function comparable({ pathname, searchParams }) {
    const decisive = [...searchParams].filter(([name]) => !BESIDE.includes(name))
    return `${pathname}?${decisive.map((pair) => pair.join("=")).sort().join("&")}`
  }

  // One entry an action: a button that leads to another page first changes what follows the path.
  function go(state, url) {
    const isEntry = isAsked && comparable(new URL(location.href)) !== comparable(url)
    if (isEntry) isAsked = false
    ;(isEntry ? pushState : replaceState).call(history, state, "", url)
  }

  for (const action of ["pointerdown", "keydown"]) {
    addEventListener(action, () => { isAsked = true }, true)
  }
  addEventListener("click", ({ detail }) => { isAsked ||= detail === 0 }, true) // by no pointer
  addEventListener("popstate", () => { isAsked = false }, true)

  history.pushState = history.replaceState = (state, title, to) => {
    const before = new URL(location.href)
    const url = new URL(to ?? before, before)
    if (url.pathname === before.pathname) {
      const isOwn = ([name]) => name.startsWith(OWN)
      for (const [name] of [...url.searchParams].filter(isOwn)) url.searchParams.delete(name)
      for (const pair of [...before.searchParams].filter(isOwn)) url.searchParams.append(...pair)
    }
    go(state, url)
  }

  return {
    zoomOf: (name) => new URL(location.href).searchParams.get(OWN + name),
    keepZoom(name, value) {
      const url = new URL(location.href)
      if (value) url.searchParams.set(OWN + name, value)
      else url.searchParams.delete(OWN + name)
      go(history.state, url)
    },
  }
})()
