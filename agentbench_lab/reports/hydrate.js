// Each drawn picture becomes the live chart of the same specification; one that cannot stays as it is.
for (const data of document.querySelectorAll("script[data-figure]")) {
  const place = document.getElementById(data.dataset.figure);
  const stage = document.createElement("div");
  vegaEmbed(stage, JSON.parse(data.textContent), { actions: false, renderer: "svg", ast: true })
    .then(() => {
      // The place has the chart's text already: what lies inside is said once, not mark by mark.
      for (const svg of stage.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
      place.replaceChildren(stage);
      place.dataset.live = "true";
    })
    .catch(() => {});
}
