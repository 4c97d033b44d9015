"use strict";
// Shows the filters, which need this script, and hides the rows whose name does not match.
for (const box of document.querySelectorAll(".filter")) {
  const input = box.querySelector("input");
  const count = box.querySelector("output");
  const bodies = document.querySelectorAll("[data-filtered-by='" + input.id + "']");
  const rows = Array.from(bodies).flatMap((body) => Array.from(body.rows));
  box.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = wanted !== "" && !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    for (const body of bodies) {
      const more = body.closest("details");
      if (more && wanted !== "") { more.open = true; }
    }
    count.textContent = wanted === "" ? "" : shown + " of " + rows.length;
  });
}
