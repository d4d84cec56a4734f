import { describe, expect, test } from "bun:test";
import { type NoticeForm, noticeChanges } from "../../src/web/pages/settings-notices.tsx";
import { chatLine } from "../batch/batch-service.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";
import { mailedLink, newPerson, operator, PERSON_ENV, type Person, signedUp, topUp } from "./person.ts";

const upstream = withUpstream();
const model = chatModel({ url: upstream.url }).replace("[chat, completions]", "[chat, completions, batch]");
const service = await withService({ models: model, env: PERSON_ENV });
const ann = await signedUp(service);
const bob = await signedUp(service);
await topUp(ann, await operator(service));
const made = (await ann.send("POST", "/api/console/keys", { name: "nightly" })).body;

const ENDED = ["completed", "failed", "expired", "cancelled"];

function begin(person: Person, key: string, lines: string, more = "") {
	const at = `/api/console/batch-start?key=${key}&endpoint=/v1/chat/completions&filename=night.jsonl${more}`;
	const headers = { origin: service.url, "content-type": "application/json", "content-length": String(lines.length) };
	return person.fetch(at, { method: "POST", headers, body: lines });
}
async function over(id: string, person: Person = ann) {
	let shown = (await person.get(`/api/console/batches/${id}`)).body;
	await waitFor(
		async () => {
			shown = (await person.get(`/api/console/batches/${id}`)).body;
			return ENDED.includes(shown.state);
		},
		"the batch to be over",
		30_000,
	);
	return shown;
}

describe("a batch in the console", () => {
	test("starts with a file, shows its cost and returns its answers", async () => {
		const started = await begin(ann, made.key.id, `${chatLine("a")}\n${chatLine("b")}\n`);
		expect(started.status).toBe(200);
		const { id } = (await started.json()) as { id: string };
		const shown = await over(id);
		expect(shown).toMatchObject({
			id,
			state: "completed",
			keyName: "nightly",
			filename: "night.jsonl",
			total: 2,
			completed: 2,
			failed: 0,
			paused: null,
			problems: [],
			errorFileId: null,
		});
		expect(shown.chargedNanoUsd).toBeGreaterThan(0);
		expect((await ann.get("/api/console/batches")).body.items).toEqual([shown]);
		const file = await ann.fetch(`/api/console/batch-files/${shown.outputFileId}`);
		const lines = (await file.text()).trim().split("\n");
		expect(lines.map((line) => JSON.parse(line).custom_id).sort()).toEqual(["a", "b"]);
		expect(file.headers.get("content-disposition")).toStartWith("attachment;");
		const late = await ann.send("POST", `/api/console/batches/${id}/cancel`);
		expect([late.status, late.body.error.code]).toEqual([409, "conflict"]);
	}, 60_000);

	test("starts once although its request is repeated with the same token", async () => {
		const idOf = async (answer: Promise<Response>) => ((await (await answer).json()) as { id: string }).id;
		const count = async () => (await ann.get("/api/console/batches")).body.items.length;
		const before = await count();
		const attempt = () => idOf(begin(ann, made.key.id, chatLine("once"), `&token=${"0".repeat(32)}`));
		const [first, ...others] = await Promise.all([attempt(), attempt(), attempt()]);
		expect([...others, await attempt()]).toEqual(Array(3).fill(first));
		expect(await count()).toBe(before + 1);
		await over(first ?? "");
		expect((await begin(ann, made.key.id, chatLine("once"), "&token=short")).status).toBe(400);
	}, 60_000);

	test("filters the request log by the batch; its requests name the batch", async () => {
		const [first, second] = await Promise.all(
			["x", "y"].map(async (name) => (await (await begin(ann, made.key.id, chatLine(name))).json()) as { id: string }),
		);
		await service.post("/v1/chat/completions", made.secret, JSON.parse(chatLine("z")).body);
		await Promise.all([over(first?.id ?? ""), over(second?.id ?? "")]);
		await service.settled();
		const list = async (query: string) => (await ann.get(`/api/console/requests?${query}`)).body.items;
		const [line, ...more] = await list(`batch=${first?.id}`);
		expect([line.batchId, more]).toEqual([first?.id ?? "", []]);
		expect((await ann.get(`/api/console/requests/${line.id}`)).body.batchId).toBe(first?.id);
		expect((await list("limit=200")).filter((row: { batchId: unknown }) => row.batchId === null)).toHaveLength(1);
		for (const none of [
			"batch=batch_none",
			`batch=${first?.id}&status=failed`,
			`batch=${first?.id}&to=1`,
			`batch=${first?.id}&status=refused`,
			`batch=${first?.id}&project=proj_none`,
		])
			expect(await list(none)).toEqual([]);
		expect(await list(`batch=${first?.id}&project=none`)).toEqual([line]);
		const csv = (await (await ann.fetch(`/api/console/requests.csv?batch=${second?.id}`)).text()).trim().split("\r\n");
		expect(csv.map((row) => row.split(",").at(-1))).toEqual(["batch_id", second?.id ?? ""]);
		expect((await bob.get(`/api/console/requests?batch=${first?.id}`)).body.items).toEqual([]);
	}, 60_000);

	test("shows mistakes with their lines and can be cancelled by an owner", async () => {
		const { id } = (await (await begin(ann, made.key.id, `${chatLine("a")}\nno json\n`)).json()) as { id: string };
		const shown = await over(id);
		expect([shown.state, shown.problems[0].line]).toEqual(["failed", 2]);

		// The gate makes some lines run and others wait when the batch is cancelled.
		const gate = Promise.withResolvers<void>();
		upstream.always(() => reply().text("an answer").behind(gate.promise));
		const lines = Array.from({ length: 60 }, (_, n) => chatLine(`line ${n}`)).join("\n");
		const begun = (await (await begin(ann, made.key.id, lines)).json()) as { id: string };
		const cancelled = await ann.send("POST", `/api/console/batches/${begun.id}/cancel`);
		expect([cancelled.status, ["cancelling", "cancelled"].includes(cancelled.body.state)]).toEqual([200, true]);
		gate.resolve();
		expect((await over(begun.id)).state).toBe("cancelled");
	}, 60_000);

	test("sends notices as owners choose; other members see no URL and no secret", async () => {
		const path = "/api/console/batch-notices";
		expect((await ann.get(path)).body).toEqual({
			mail: null,
			hasWebhook: false,
			webhookUrl: null,
			events: [],
			items: [],
		});
		expect((await ann.send("POST", `${path}/secret`)).status).toBe(409);
		const put = (person: Person, webhookUrl: string | null, more = "") =>
			person.send("PUT", `${path}${more}`, { mail: "owners", webhookUrl });
		for (const url of ["http://hook.example/", "https://me:pw@hook.example/", "hook"])
			expect((await put(ann, url)).body.error.param).toBe("webhookUrl");
		const hook = "https://hook.invalid/?token=hers";
		const first = (await put(ann, hook)).body;
		expect(first).toMatchObject({ mail: "owners", hasWebhook: true, webhookUrl: hook });
		expect(first.secret).toMatch(/^whsec_[\w+/]{43}=$/);
		const asked = { mail: "owners", webhookUrl: hook, events: ["credit.low"] };
		expect((await ann.send("PUT", path, asked)).body.events).toEqual(["credit.low"]);
		expect((await ann.send("PUT", path, { ...asked, events: ["credit.high"] })).status).toBe(400);
		// A request without notice settings must not change these settings.
		expect((await put(ann, hook)).body.events).toEqual(["credit.low"]);
		expect((await ann.send("POST", `${path}/evt_none/replay`)).status).toBe(404);
		expect((await put(ann, "https://hook.invalid/?token=other")).body.secret).toBeNull();
		const second = (await ann.send("POST", `${path}/secret`)).body.secret;
		expect([second === first.secret, second.length]).toEqual([false, first.secret.length]);

		const carl = await signedUp(service);
		await ann.send("POST", "/api/console/invitations", { email: carl.email, role: "developer" });
		const token = new URL(await mailedLink(carl)).searchParams.get("token");
		await carl.send("POST", "/api/console/invitations/accept", { token });
		const at = `?account=${ann.accountId}`;
		expect((await carl.get(`${path}${at}`)).body).toMatchObject({ mail: "owners", hasWebhook: true, webhookUrl: null });
		expect((await put(carl, null, at)).status).toBe(403);
		expect((await carl.send("POST", `${path}/secret${at}`)).status).toBe(403);
		expect((await bob.get(`${path}${at}`)).status).toBe(404);

		// Requests that save different settings concurrently must not overwrite each other.
		const saltOf = async () =>
			(
				await service.db.sql`select webhook_salt as salt from batch_notice_setting where account_id = ${ann.accountId}`
			)[0]?.salt;
		const saving = await service.db.sql.begin(async (sql) => {
			await sql`update batch_notice_setting set webhook_salt = 'made anew', events = '["spend.unusual"]' where account_id = ${ann.accountId}`;
			const waits = put(ann, hook);
			const saves = () => lockWaits(service.db.sql, "%insert into batch_notice_setting%");
			await waitFor(async () => (await saves()) > 0, "the settings to be saved behind it");
			return { waits };
		});
		const saved = (await saving.waits).body;
		expect([saved.secret, await saltOf(), saved.events]).toEqual([null, "made anew", ["spend.unusual"]]);
		// Of two concurrent set-ups one returns a secret, which must be the stored one.
		await put(ann, null);
		const shown = (await Promise.all(Array.from({ length: 8 }, () => put(ann, hook)))).map(({ body }) => body.secret);
		expect(shown.filter((secret) => secret !== null)).toHaveLength(1);

		const [kept] = await service.db.sql`select (select json_agg(s)::text from batch_notice_setting s)
			|| (select json_agg(a)::text from audit_event a) as text`;
		for (const secret of [first.secret, second]) {
			expect(kept?.text).not.toContain(secret.slice("whsec_".length));
			expect(JSON.stringify(service.logged)).not.toContain(secret.slice("whsec_".length));
		}
		expect(JSON.stringify(await service.db.sql`select * from audit_event`)).not.toContain("token=");
		expect(JSON.stringify(service.logged)).not.toContain("token=");
		await service.db.sql`
			update session set authenticated_at = null, created_at = created_at - interval '16 minutes'
			where user_id = (select id from console_user where email = ${ann.email})`;
		expect((await put(ann, "https://evil.invalid/")).body.error.code).toBe("reauthentication_required");
		expect((await ann.send("POST", `${path}/secret`)).body.error.code).toBe("reauthentication_required");
		expect((await put(ann, null)).body).toMatchObject({ hasWebhook: false, secret: null });
	}, 60_000);

	test("keeps notice settings changed in two tabs if different fields were changed", async () => {
		const dora = await signedUp(service);
		const path = "/api/console/batch-notices";
		const start: NoticeForm = { mail: "owners", webhookUrl: null, events: ["credit.low", "key.expiring"] };
		await dora.send("PUT", path, start);
		const save = (wanted: Partial<NoticeForm>) => dora.send("PUT", path, noticeChanges(start, { ...start, ...wanted }));
		const saved = [
			await save({ mail: "maker" }),
			await save({ webhookUrl: "https://hook.example/" }),
			await save({ events: ["credit.low", "key.expiring", "top_up.confirmed"] }),
			await save({ events: ["credit.low"] }),
			await save({ mail: "maker" }),
		];
		expect(saved.map(({ status }) => status)).toEqual(Array(5).fill(200));
		expect(saved.filter(({ body }) => body.secret !== null).length).toBe(1);
		expect((await dora.get(path)).body).toMatchObject({
			mail: "maker",
			webhookUrl: "https://hook.example/",
			events: ["credit.low", "top_up.confirmed"],
		});
		expect((await save({ webhookUrl: "https://other.example/" })).body.secret).toBeNull();
		const off = await dora.send("PUT", path, { webhookUrl: null });
		expect(off.body).toMatchObject({ mail: "maker", hasWebhook: false, secret: null });
	});

	test("returns the same webhook secret if the request for it is repeated", async () => {
		const dora = await signedUp(service);
		const path = "/api/console/batch-notices";
		const set = { webhookUrl: "https://hook.example/", token: crypto.randomUUID() };
		const [first, again] = [await dora.send("PUT", path, set), await dora.send("PUT", path, set)];
		expect(first.body.secret).toMatch(/^whsec_/);
		expect(again.body.secret).toBe(first.body.secret);
		const renew = (token: string) => dora.send("POST", `${path}/secret`, { token });
		const token = crypto.randomUUID();
		const renewed = [await renew(token), await renew(token), await renew(crypto.randomUUID())];
		expect(new Set([first, ...renewed].map(({ body }) => body.secret)).size).toBe(3);
		expect(renewed[1]?.body.secret).toBe(renewed[0]?.body.secret);
	});

	test("can be read and cancelled although the account's first keys do not allow it", async () => {
		const dora = await signedUp(service);
		await topUp(dora, await operator(service));
		const { id: projectId } = (await dora.send("POST", "/api/console/projects", { name: "over" })).body;
		const make = async (asked: object) => (await dora.send("POST", "/api/console/keys", asked)).body.key;
		const reading = await make({ name: "reads", readsOnly: true });
		const first = await make({ name: "first", projectId });
		const second = await make({ name: "second" });
		const third = await make({ name: "third" });
		expect([reading, first, second, third].map(({ id }) => id)).toEqual(
			[reading, first, second, third].map(({ id }) => id).sort(),
		);
		const { id } = (await (await begin(dora, third.id, chatLine("a"))).json()) as { id: string };
		const shown = await over(id, dora);
		expect((await dora.send("POST", `/api/console/projects/${projectId}/archive`)).status).toBe(200);
		expect((await dora.send("POST", `/api/console/keys/${second.id}/revoke`)).status).toBe(200);
		expect((await dora.fetch(`/api/console/batch-files/${shown.outputFileId}`)).status).toBe(200);
		const ended = await dora.send("POST", `/api/console/batches/${id}/cancel`);
		expect([ended.status, ended.body.error.code]).toEqual([409, "conflict"]);
	}, 60_000);

	test("is hidden from other accounts, as are its file and key", async () => {
		const [batch] = (await ann.get("/api/console/batches")).body.items.filter(
			({ state }: { state: string }) => state === "completed",
		);
		for (const account of ["", `?account=${ann.accountId}`]) {
			for (const path of [`batches/${batch.id}`, `batch-files/${batch.outputFileId}`])
				expect((await bob.get(`/api/console/${path}${account}`)).status).not.toBe(200);
			expect((await bob.send("POST", `/api/console/batches/${batch.id}/cancel${account}`)).status).toBe(404);
		}
		expect((await bob.get("/api/console/batches")).body.items).toEqual([]);
		const own = (await bob.send("POST", "/api/console/keys", { name: "his" })).body;
		expect((await bob.get(`/api/console/batch-files/${batch.outputFileId}`)).status).toBe(404);
		expect((await begin(bob, made.key.id, chatLine("a"))).status).toBe(404);
		expect((await begin(bob, made.key.id, chatLine("a"), `&account=${ann.accountId}`)).status).toBe(404);
		expect((await begin(bob, own.key.id, chatLine("a"))).status).toBe(402);
		const stranger = newPerson(service);
		expect((await begin(stranger, made.key.id, chatLine("a"))).status).toBe(401);
		expect((await stranger.get(`/api/console/batch-files/${batch.outputFileId}`)).status).toBe(401);
		const foreign = await ann.fetch(`/api/console/batch-start?key=${made.key.id}`, { method: "POST", body: "{}" });
		expect(foreign.status).toBe(403);
	}, 60_000);
});
