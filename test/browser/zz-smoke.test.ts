import { launch, openTab } from "/work/main/test/browser/chromium.ts";
import { setStage, picture } from "/work/main/test/browser/stage.ts";
import { test } from "bun:test";
test("smoke", async () => {
  const s = await setStage();
  const b = await launch();
  const t = await openTab(b, s.service.url, {});
  const t0 = performance.now();
  await t.page.goto("/"); await t.page.waitForSelector("h1"); console.log("landing", performance.now()-t0);
  await t.page.waitForTimeout(600); await picture(t.page, "landing");
  console.log(t.complaints);
  const r = await openTab(b, s.service.url, { person: s.rich });
  for (const p of ["/overview","/keys",`/keys/${s.ids.key}`,"/credit","/usage","/requests",`/requests/${s.ids.request}`]) {
    const a = performance.now(); await r.page.goto(p); await r.page.waitForSelector("h1"); console.log(p, Math.round(performance.now()-a)); await r.page.waitForTimeout(700); await picture(r.page, p.slice(1,9).replaceAll("/","_")); }
  console.log(r.complaints);
  await b.close(); await s.stop();
}, 120000);
