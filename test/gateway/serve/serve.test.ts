import { describe, expect, test } from "bun:test";
import { mayStartRequest } from "../../../src/base/time-slice.ts";
import type { Model, ModelKind } from "../../../src/catalog/model.ts";
import type { Connection } from "../../../src/gateway/connection.ts";
import { INFERENCE_ENDPOINTS } from "../../../src/gateway/inference.ts";
import { createAuthenticate, loadKey } from "../../../src/gateway/serve/authenticate.ts";
import { createFailedAttempts } from "../../../src/keys/failed-attempts.ts";
import type { KeyEntry } from "../../../src/keys/key-entry.ts";
import { createDigest, type KeyDigest, newSecret } from "../../../src/keys/secret.ts";
import { costOf, createRoad, fakeRequest, NOTHING_LEFT, readerOf, roadModel } from "../../support/road.ts";
import { modelOver, snapshotOf } from "../../support/upstream-catalog.ts";

const KINDS: readonly ModelKind[] = ["chat", "embedding", "transcription", "image", "rerank"];
const ofEachKind: readonly Model[] = KINDS.map((kind) =>
	modelOver([], { id: kind, kind, modes: new Set(["chat", "completions"]) }),
);
const PATHS = Object.entries(INFERENCE_ENDPOINTS);
const CHAT = INFERENCE_ENDPOINTS["/v1/chat/completions"];

async function errorOf(answer: Promise<Response>) {
	const response = await answer;
	const { error } = (await response.json()) as { error: { code: string; param: string | null } };
	return { status: response.status, code: error.code, param: error.param };
}

describe("every endpoint of the gateway", () => {
	test.each(PATHS)("%s measures the deadline of the request body with the injected clock", async (_, endpoint) => {
		const road = createRoad();
		const before = road.clock.pending();
		const waiting = Promise.withResolvers<void>();
		const body = new ReadableStream({ pull: () => waiting.resolve() }, { highWaterMark: 0 });
		const headers = {
			"content-type": endpoint.name === "transcription" ? "multipart/form-data; boundary=b" : "application/json",
		};
		const request = new Request("http://internal.example/", { method: "POST", headers, body });
		const deps = { ...road.deps, catalog: { ...road.deps.catalog, current: () => snapshotOf(...ofEachKind) } };
		const answer = endpoint.answer(deps, { request, address: "", setIdleTimeout() {} });
		await waiting.promise;
		road.clock.advance(10 * 60_000);
		expect(await errorOf(answer)).toMatchObject({ status: 408, code: "request_timeout" });
		expect(road.clock.pending()).toBe(before);
		expect(road.refused).toMatchObject([{ code: "request_timeout", endpoint: endpoint.name, model: null }]);
	});

	test.each(PATHS)("%s checks the key first, then the model's name", async (path, endpoint) => {
		const road = createRoad();
		const deps = { ...road.deps, catalog: { ...road.deps.catalog, current: () => snapshotOf(...ofEachKind) } };
		const { connection } = fakeRequest({ model: "" }, path);
		const form = new FormData();
		form.set("model", "");
		const request =
			endpoint.name === "transcription"
				? new Request("http://internal.example/", { method: "POST", body: form })
				: connection.request;
		expect(await errorOf(endpoint.answer(deps, { ...connection, request }))).toEqual({
			status: 400,
			code: "invalid_request",
			param: "model",
		});
		expect(road.refused).toMatchObject([{ keyId: road.key.id, endpoint: endpoint.name, model: null }]);
	});
});

test.each([
	["a key that is looked up", () => new Promise<KeyEntry>(() => {})],
	["its turn", undefined],
])("a large body counts as memory while its request waits for %s", async (_, authenticate) => {
	const road = createRoad();
	while (mayStartRequest("another account"));
	const { connection } = fakeRequest({});
	connection.request.headers.set("content-length", "9000000");
	void CHAT.answer(road.deps, connection, authenticate);
	expect(road.deps.clients.bodyMemory.bytes()).toBe(1024 * 1024);
});

describe("a key that may not be used", () => {
	const digest = createDigest("pepper");
	const secret = newSecret("service");
	const past = 1;
	const cases: [string, (key: KeyEntry) => void][] = [
		["api_key_revoked", (key) => Object.assign(key, { state: "revoked" })],
		["api_key_expired", (key) => Object.assign(key, { expiresAtMs: past })],
		["account_suspended", (key) => Object.assign(key.account, { state: "suspended" })],
	];

	test.each(cases)("gets %s, which the key owner's log records, and is hashed once", async (code, change) => {
		const road = createRoad();
		change(road.key);
		let digested = 0;
		const counting = (text: typeof secret) => {
			digested += 1;
			return digest(text);
		};
		const authenticate = createAuthenticate(
			{
				keyring: { peek: () => road.key },
				keyLoadLimiter: { find: () => Promise.reject(new Error("the key is in memory")) },
				digest: counting,
				failedAttempts: createFailedAttempts({ clock: road.clock }, { perMinuteMax: () => 9 }),
				clock: road.clock,
			},
			{ serviceName: "service" },
		);
		const { connection } = fakeRequest({});
		connection.request.headers.set("authorization", `Bearer ${secret}`);
		expect(await errorOf(CHAT.answer({ ...road.deps, authenticate }, connection))).toMatchObject({ code });
		expect(digested).toBe(1);
		expect(road.refused).toMatchObject([{ code, keyId: road.key.id, accountId: road.key.accountId }]);
		expect(road.leftovers()).toMatchObject({ running: 0, ofKey: 0 });
	});
});

describe("a request that the gateway process sends to itself", () => {
	const known = "d".repeat(64) as KeyDigest;

	function within() {
		const road = createRoad();
		const load = async (digest: KeyDigest) => (digest === known ? road.key : null);
		const authenticate = () => {
			throw new Error("a header was read");
		};
		const deps = { ...road.deps, authenticate };
		const serveAs = (digest: KeyDigest, connection: Connection) =>
			CHAT.answer(deps, connection, () => loadKey({ load }, digest, road.clock));
		return { road, serveAs };
	}

	test("is served without a socket, and charged", async () => {
		const { road, serveAs } = within();
		const whole = serveAs(known, fakeRequest({}).connection);
		(await road.call()).reply(3);
		expect(await (await whole).json()).toMatchObject({ model: roadModel.id, usage: { completion_tokens: 3 } });
		const streamed = serveAs(known, fakeRequest({ stream: true }).connection);
		const call = await road.call(2);
		call.arrive("a", "b");
		call.end();
		const reader = readerOf(await streamed);
		let text = "";
		for (let read = await reader.read(); !read.done; read = await reader.read()) text += read.value;
		expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
		expect(road.settled.map(({ charged }) => Number(charged))).toEqual([costOf(3), costOf(2)]);
		expect(road.leftovers()).toEqual(NOTHING_LEFT);
	});
});

test("a chat after the gateway's shutdown gets 503 and is not charged", async () => {
	const road = createRoad();
	road.openStreams.shutDown();
	expect(await errorOf(CHAT.answer(road.deps, fakeRequest({ stream: true }).connection))).toMatchObject({
		status: 503,
		code: "service_unavailable",
	});
	expect(road.settled).toMatchObject([{ ending: "shutdown", charged: 0 }]);
	expect(road.leftovers()).toEqual(NOTHING_LEFT);
});
