import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { atEnd } from "../support/at-end.ts";
import { ask, postJson } from "../support/chat.ts";
import { secondGateway } from "../support/second-gateway.ts";
import { chatModel, withService } from "../support/service.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const LEASE_TTL_S = "5";
const upstream = withUpstream();
const service = await withService({
	models: chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]"),
	env: { LEASE_TTL_S },
});
const { proxy, url } = withDatabaseProxy(service.db.url);
/** A second instance, some of whose connections to Postgres can be made silent. */
const distant = await secondGateway(service, url, { LEASE_TTL_S, DRAIN_S: "1" });

/** Makes only the heartbeats of the second instance fail. */
function silenceHeartbeats(): void {
	const look = setInterval(() => {
		for (const connection of proxy.connections()) if (connection.name.endsWith(" liveness")) connection.freeze();
	}, 1);
	atEnd(() => clearInterval(look));
}

test("an instance cut off from Postgres replays no answer or file to a revoked key", async () => {
	const { keyId, accountId, secret } = await service.customer();
	const send = (path: string, init: RequestInit = {}) =>
		fetch(`${distant.url}${path}`, { ...init, headers: { authorization: `Bearer ${secret}` } });
	const post = (path: string, body: object, key = "once") =>
		postJson(`${distant.url}${path}`, secret, body, { headers: { "idempotency-key": key } });
	const chat = () => post("/v1/chat/completions", ask("hello", { max_tokens: 5 }));
	const upload = () => {
		const form = new FormData();
		form.set("purpose", "batch");
		const line = '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}\n';
		form.set("file", new File([line], "in.jsonl"));
		return send("/v1/files", { method: "POST", body: form });
	};
	const { id } = (await (await upload()).json()) as { id: string };
	const acts: Record<string, () => Promise<Response>> = {
		replay: chat,
		upload,
		content: () => send(`/v1/files/${id}/content`),
		batch: () =>
			post("/v1/batches", { input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" }, "batch"),
	};
	expect((await chat()).status).toBe(200);
	await waitFor(async () => (await chat()).headers.get("idempotent-replayed") === "true", "the answer to be kept");

	silenceHeartbeats();
	const entry = await revokeKey(service.db.statements, { id: keyId });
	const { effective } = await waitForAllInstances({ liveness: service.db.liveness, clock: systemClock }, entry, 20_000);
	expect(effective).toBe(true);
	const heard: Record<string, string> = {};
	for (const [act, ask] of Object.entries(acts)) {
		const response = await ask();
		heard[act] = response.status === 200 ? "done" : ((await response.json()) as { error: { code: string } }).error.code;
	}
	expect(heard).toEqual(Object.fromEntries(Object.keys(acts).map((act) => [act, "service_unavailable"])));
	expect(await service.db.sql`select id from stored_file where account_id = ${accountId}`).toHaveLength(1);
}, 40_000);
