import { expect, test } from "bun:test";
import { pathOf } from "../../src/gateway/request-url.ts";
import { untilEnd } from "../support/at-end.ts";
import { ask } from "../support/chat.ts";
import { chatModel, withService } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";

const upstream = untilEnd(startUpstream());
const service = await withService({ models: chatModel({ url: upstream.url }) });

test("a path is what stands between the address and the query, still encoded, without a slash at its end", () => {
	for (const [url, path] of [
		["http://host/v1/chat/completions", "/v1/chat/completions"],
		["http://host:8080/v1/chat/completions/", "/v1/chat/completions"],
		["https://host/v1/chat/completions?a=/b/", "/v1/chat/completions"],
		["https://host/v1/chat/completions/?", "/v1/chat/completions"],
		["http://host/v1/chat%2Fcompletions", "/v1/chat%2Fcompletions"],
		["http://host/v1//chat/completions", "/v1//chat/completions"],
		["http://[::1]:8080/", ""],
		["http://host/?/v1/chat/completions", ""],
	] as const)
		expect(pathOf(url)).toBe(path);
});

test("an endpoint is found with a query, or a slash at its end, and under no other path", async () => {
	const { secret } = await service.customer();
	const status = async (path: string) => (await service.post(path, secret, ask())).status;
	for (const path of ["", "/", "?a=b", "/?a=b"]) expect(await status(`/v1/chat/completions${path}`)).toBe(200);
	for (const path of ["//", "/x", "%2F"]) expect(await status(`/v1/chat/completions${path}`)).toBe(404);
	expect(await status("/v1//chat/completions")).toBe(404);
});
