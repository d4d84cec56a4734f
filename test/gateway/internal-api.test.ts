import { expect, test } from "bun:test";
import type { Batches } from "../../src/batch/batches.ts";
import type { Files } from "../../src/files/files.ts";
import { createInternalApi } from "../../src/gateway/internal-api.ts";
import { signInternalToken } from "../../src/keys/internal-token.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import { plainKey } from "../support/plain-key.ts";
import { createRoad, fakeRequest } from "../support/road.ts";

const SECRET = "secret of this console";
const PATH = "/v1/chat/completions";
const keyDigest = "digest" as KeyDigest;

/** Sends a chat to the internal address that the console uses, authorised by the token that `tokenAt` returns. */
async function chatWith(tokenAt: (nowMs: number) => string | undefined) {
	const road = createRoad();
	const loaded: KeyDigest[] = [];
	const load = async (digest: KeyDigest) => {
		loaded.push(digest);
		return plainKey();
	};
	const parts = { serve: road.deps, keyring: { load }, files: {} as Files, batches: {} as Batches };
	const door = createInternalApi(parts, { secret: SECRET });
	const { connection } = fakeRequest({});
	const request = new Request(`http://gateway${PATH}`, connection.request);
	const token = tokenAt(road.clock.wallMs());
	if (token === undefined) request.headers.delete("authorization");
	else request.headers.set("authorization", `Bearer ${token}`);
	return { road, loaded, answer: door({ ...connection, request }) };
}

test("the gateway's internal address serves a request for the key named in its token", async () => {
	const { road, loaded, answer } = await chatWith((nowMs) =>
		signInternalToken(SECRET, { keyDigest, path: PATH }, nowMs),
	);
	(await road.call()).reply(2);
	expect((await answer).status).toBe(200);
	expect(loaded).toEqual([keyDigest]);
});

test.each<[string, (nowMs: number) => string | undefined]>([
	["missing", () => undefined],
	["unsigned", () => "tgi_eyJ9.c2ln"],
	["a customer's secret", () => "sk_service_secret"],
	["of another console", (nowMs) => signInternalToken("another secret", { keyDigest, path: PATH }, nowMs)],
	["for another path", (nowMs) => signInternalToken(SECRET, { keyDigest, path: "/v1/files" }, nowMs)],
	["expired", (nowMs) => signInternalToken(SECRET, { keyDigest, path: PATH }, nowMs - 60_000)],
])("the internal address refuses a request whose token is %s", async (_, tokenAt) => {
	const { road, loaded, answer } = await chatWith(tokenAt);
	const refused = await answer;
	expect([refused.status, (await refused.json()).error.code]).toEqual([403, "forbidden"]);
	expect([loaded, road.calls]).toEqual([[], []]);
});
