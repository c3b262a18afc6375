// What a page of the site does: its players start when a reader comes near, its contents are open where there is room.

const NEAR = "900px 0px";

/** Put back into the frame's page the parts that the page carries for all its frames. */
function start(frame) {
  const part = (digest) => document.getElementById(`part-${digest}`).textContent;
  frame.srcdoc = frame.dataset.page.replace(/ data-part="([0-9a-f]+)">/g, (_, digest) => `>${part(digest)}`);
  frame.hidden = false;
  frame.previousElementSibling.setAttribute("aria-hidden", "true");
}

const near = new IntersectionObserver(
  (seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      start(target.querySelector("iframe"));
    }
  },
  { rootMargin: NEAR },
);
for (const player of document.querySelectorAll(".player")) near.observe(player);

const contents = document.querySelector(".contents");
const wide = matchMedia("(min-width: 1180px)");
const unfold = () => contents && (contents.open = wide.matches);
wide.addEventListener("change", unfold);
unfold();
