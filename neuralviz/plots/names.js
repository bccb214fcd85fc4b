// Of names on a map that overlap here, the first stays; those that leave the figure go.
// In front of live_figure.js and map_page.js.

function hideCrowdedNames(figure) {
  if (!figure.layout?.annotations?.some(({ name }) => name)) return
  const shown = []
  const { left, right } = figure.getBoundingClientRect()
  for (const label of figure.querySelectorAll(".annotation")) {
    const box = (label.querySelector(".annotation-text-g") ?? label).getBoundingClientRect()
    const isCrowded = box.left < left || box.right > right || shown.some((other) =>
      box.left < other.right && other.left < box.right &&
      box.top < other.bottom && other.top < box.bottom)
    label.style.visibility = isCrowded ? "hidden" : ""
    if (!isCrowded) shown.push(box)
  }
}
