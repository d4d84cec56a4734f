import { expect, test } from "bun:test";
import { chatModel, type TestService, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";

/** Only the operator can read the metrics, even if METRICS_TOKEN is not set. */

const SECRETS = { KEY_PEPPER: "p".repeat(32), CONSOLE_SECRET: "c".repeat(32) };
const TOKEN = "t".repeat(32);
const models = chatModel({ url: withUpstream().url });
const env = { ...SECRETS, NODE_ENV: "production", TRUSTED_PROXIES: "127.0.0.1" };
const unset = await withService({ models, env: { TRUSTED_PROXIES: "127.0.0.1" } });
const open = await withService({ models, env });
const closed = await withService({ models, env: { ...env, METRICS_TOKEN: TOKEN } });

const status = async (service: TestService, headers: Record<string, string>) =>
	(await fetch(`${service.url}/metrics`, { headers })).status;

test("without METRICS_TOKEN only requests from this machine can read metrics", async () => {
	for (const service of [open, unset]) {
		expect(await status(service, {})).toBe(200);
		expect(await status(service, { "x-forwarded-for": "203.0.113.7" })).toBe(404);
		expect(await status(service, { "x-forwarded-for": "127.0.0.1" })).toBe(404);
		expect(await status(service, { forwarded: "for=203.0.113.7" })).toBe(404);
	}
});

test("METRICS_TOKEN grants access from any address", async () => {
	for (const wrong of ["", "Bearer", `Bearer ${TOKEN.slice(1)}`, `Bearer ${TOKEN}x`, `bearer ${TOKEN}`, TOKEN])
		expect([wrong, await status(closed, { authorization: wrong })]).toEqual([wrong, 404]);
	expect(await status(closed, { authorization: `Bearer ${TOKEN}`, "x-forwarded-for": "203.0.113.7" })).toBe(200);
});
