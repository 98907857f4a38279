(function () {
  const slides = [...document.querySelectorAll("section")];
  const last = slides.length - 1;
  const steps = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1,
    ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Backspace: -1, Home: -Infinity, End: Infinity,
  };
  let at = 0;
  function go(to) {
    slides[at].classList.remove("now");
    at = Math.max(0, Math.min(last, to || 0));
    slides[at].classList.add("now");
    history.replaceState(null, "", "#" + (at + 1));
  }
  function fit(body) {
    for (let part = 0.96; part > 0.55 && body.scrollHeight > body.clientHeight + 1; part -= 0.04) {
      body.style.fontSize = "calc(var(--size) * " + part + ")";
    }
  }
  document.body.classList.add("live");
  slides.forEach((slide) => fit(slide.querySelector(".body")));
  addEventListener("keydown", (event) => {
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("button") && (event.key === " " || event.key === "Enter")) return;
    event.preventDefault();
    go(at + steps[event.key]);
  });
  addEventListener("hashchange", () => go(parseInt(location.hash.slice(1), 10) - 1));
  const nav = document.querySelector("nav");
  nav.hidden = false;
  [...nav.children].forEach((button, number) => button.addEventListener("click", () => go(at + 2 * number - 1)));
  go(parseInt(location.hash.slice(1), 10) - 1);
})();
