// The browser's history has an entry for each thing that a person does, and none for what a page
// adds to its address by itself. Streamlit does it the other way round.

{
  const { pushState, replaceState } = history
  const BESIDE = ["run", "earlier"] // name what is shown and decide nothing: never an entry
  let isAsked = false // by a person, since the last entry

  const comparable = (url) => {
    const { pathname, searchParams } = new URL(url ?? location.href, location.href)
    for (const name of BESIDE) searchParams.delete(name)
    searchParams.sort()
    return { pathname, all: `${pathname}?${searchParams}` }
  }

  for (const action of ["pointerdown", "keydown"]) {
    addEventListener(action, () => { isAsked = true }, true)
  }
  addEventListener("popstate", () => { isAsked = false }, true)

  history.pushState = history.replaceState = (state, title, url) => {
    const before = comparable(location.href)
    const after = comparable(url)
    const isNew = before.all !== after.all && (isAsked || before.pathname !== after.pathname)
    if (isNew) isAsked = false
    ;(isNew ? pushState : replaceState).call(history, state, title, url)
  }
}
