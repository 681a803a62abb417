// Search in a site that is opened from a folder (file://). A browser then neither fetches search/search_index.json nor starts a worker: the
// index comes from a script, and the theme's worker runs in a frame that nobody sees. Served over HTTP, this does nothing.
if (location.protocol === 'file:') {
  const index = new URL('search_index.js', document.currentScript.src).href;
  document.write(`<script src="${index}"></${'script'}>`); // runs before the scripts of the theme, which look for __search

  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.waiting = [];
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent('message', {data}));
      const script = this.inside.document.createElement('script');
      script.src = new URL(address, document.baseURI).href;
      script.addEventListener('load', () => {
        const {waiting} = this;
        this.waiting = null;
        for (const data of waiting) this.postMessage(data);
      });
      this.inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new MessageEvent('message', {data}));
    }
  };
}
