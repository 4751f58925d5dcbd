// Sets the theme before anything is drawn, so that a dark page never flashes white. theme.ts does the rest.
(function () {
  var theme = null;
  try {
    theme = JSON.parse(localStorage.getItem("gpulse.theme"));
  } catch {
    // No storage: as the system has it.
  }
  if (!/^(light|dark|yellow|blue)$/.test(theme)) {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
