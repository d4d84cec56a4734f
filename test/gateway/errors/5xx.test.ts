import { beforeEach, describe, expect, test } from "bun:test";
import { ask, errorOf, expectUncharged } from "../../support/chat.ts";
import { chatModel, withService } from "../../support/service.ts";
import type { Reply } from "../../support/upstream-reply.ts";
import { reply, withUpstream } from "../../support/upstream-server.ts";
import { waitFor } from "../../support/wait.ts";

const upstream = withUpstream();
const dying = withUpstream();
const service = await withService({
	models: `${chatModel({ url: upstream.url })}\n${chatModel({ id: "gone-model", url: dying.url })}`,
	limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1\n  breaker_cool_s: 0.1",
});
const customer = await service.customer();

const post = (body: unknown) => service.post("/v1/chat/completions", customer.secret, body);

/** Sends a successful request, because consecutive failures would open the circuit breaker. */
async function succeed(): Promise<void> {
	upstream.always(() => reply().text("fine"));
	const { secret } = await service.customer();
	expect((await service.post("/v1/chat/completions", secret, ask())).status).toBe(200);
}
beforeEach(succeed);

describe("502 upstream_error hides the text of a model server if", () => {
	const secret = {
		error: { message: "CUDA error at /srv/models/secret.gguf", type: "InternalServerError", code: 500 },
	};
	const cases: [string, () => Reply][] = [
		["it fails", () => reply().errorStatus(500, secret)],
		["it answers with an error in a 200", () => reply().raw(JSON.stringify(secret), "application/json")],
		["it answers with something else", () => reply().raw("<html>hello</html>", "text/html")],
		["it answers with nothing", () => reply().raw("", "application/json")],
		["its first event is an error", () => reply().errorEvent(0)],
		["its stream breaks before the first token", () => reply().text("a b").dieAfter(0)],
		["its stream ends before the first token", () => reply().text("a b").endAfter(0)],
	];
	for (const [name, answer] of cases)
		test(name, async () => {
			for (const stream of name.startsWith("its stream") ? [true] : [false, true]) {
				// The gateway repeats a failed call once, so the server must fail both times.
				upstream.always(answer);
				const { status, error } = await errorOf(await post(ask("hi", { stream })));
				expect(status).toBe(502);
				expect(error).toEqual({
					message: "The model server failed to respond.",
					type: "server_error",
					param: null,
					code: "upstream_error",
				});
			}
			await expectUncharged(service, customer.accountId);
		});
});

describe("503 service_unavailable", () => {
	test.each([
		["refuses our key", () => reply().errorStatus(401)],
		["does not know the model", () => reply().errorStatus(404)],
		["redirects", () => reply().errorStatus(302, "", { location: "http://127.0.0.1:1/" })],
	] as const)("forbids a retry if a model server %s", async (_, answer) => {
		for (const stream of [false, true]) {
			upstream.always(answer);
			const { status, error, headers } = await errorOf(await post(ask("hi", { stream })));
			expect([status, error.code, error.type]).toEqual([503, "service_unavailable", "server_error"]);
			expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual([null, "false"]);
		}
	});

	test("has a retry-after header if no server of the model is reachable", async () => {
		await dying.stop();
		const status = async () =>
			((await (await service.get("/v1/models/gone-model", customer.secret)).json()) as { status: string }).status;
		await waitFor(async () => (await status()) === "unavailable", "the replica to be known as down");
		for (const stream of [false, true]) {
			const { status: code, error, headers } = await errorOf(await post(ask("hi", { model: "gone-model", stream })));
			expect(code).toBe(503);
			expect(error).toMatchObject({ code: "service_unavailable", type: "server_error", param: null });
			expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
		}
	});
});

test("no request with a 5xx was charged", async () => {
	await expectUncharged(service, customer.accountId);
});
