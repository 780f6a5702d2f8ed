// Elements are made from data: text is always text, never markup.

// h("p", { class: "soft", title: why }, "text", element, ...). Attributes that are null or false are left out; `on...`
// are listeners; children that are null are left out.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

function replaceChildren(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

// A case id may break after its slashes.
function breakable(id) {
  return String(id).split("/").flatMap((part, i) => (i === 0 ? [part] : ["/", h("wbr"), part]));
}

// A table whose head is fixed text and whose cells are text, elements, or { text, ...attributes }.
function table(label, heads, lines, { css = "" } = {}) {
  const cell = (value, tag) => {
    const isPlain = value === null || value === undefined || typeof value !== "object" || value instanceof Node
      || Array.isArray(value);
    if (isPlain) return h(tag, tag === "th" ? { scope: "col" } : {}, value);
    const { text, ...attributes } = value;
    return h(tag, tag === "th" ? { scope: "col", ...attributes } : attributes, text);
  };
  // Wide tables scroll in a frame of their own, which the keyboard reaches.
  return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label },
    h("table", { class: css },
      h("thead", {}, h("tr", {}, heads.map((head) => cell(head, "th")))),
      h("tbody", {}, lines.map((line) => h("tr", {}, line.map((value) => cell(value, "td")))))));
}

// A link that acts within the page.
function actionLink(href, title, text, action) {
  return h("a", { href, title, onclick: (event) => { event.preventDefault(); action(); } }, text);
}

// Buttons side by side, pressed or not: each choice is [value, text, title, isDisabled].
function buttonGroup(label, choices, { isPressed, press, ...attributes }) {
  return h("fieldset", attributes, h("legend", {}, label),
    choices.map(([value, text = value, title = null, disabled = false]) =>
      h("button", { type: "button", "aria-pressed": String(isPressed(value)), title, disabled,
        onclick: () => press(value) }, text)));
}

// A button that copies a text, and says so.
function copyButton(text, label = "copy") {
  const button = h("button", { type: "button", class: "copy", title: text }, label);
  button.addEventListener("click", async () => {
    const done = await copyText(text);
    button.textContent = done ? "copied" : "cannot copy";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page from a file may not use the clipboard; the old way still works there.
    const area = h("textarea", { class: "hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
