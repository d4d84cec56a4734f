import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { updateAccount } from "../../src/keys/account-admin.ts";
import { batchesOf, batchModel, chatLine } from "../batch/batch-service.ts";
import { newPerson, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { chatModel, withService } from "../support/service.ts";
import { withEndpoints } from "../support/upstream-endpoints.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

const upstream = withUpstream();
const vectors = withEndpoints("openai");
const only = "    aliases: [nick]\n    visible_to: [partner]";
const service = await withService({
	env: PERSON_ENV,
	models: `${chatModel({ url: upstream.url })}
${batchModel(upstream.url, { id: "private-model", extra: only })}
  - id: private-vectors
    kind: embedding
    visible_to: [partner]
    rates: { input: "0.01" }
    upstreams: [{ url: "${vectors.url}", model: served-name, dialect: openai }]
routes:
  - { id: private-route, models: [private-model] }
  - { id: mixed-route, models: [private-model, test-model] }`,
});
const batches = batchesOf(service, upstream);

async function customer(tags: readonly string[]) {
	const made = await service.customer();
	await tag(made.accountId, tags);
	return made;
}
async function tag(accountId: string, tags: readonly string[]): Promise<void> {
	const { entry } = await updateAccount(service.db.statements, accountId, { tags });
	if (entry === null) throw new Error("instances apply tags");
	await waitForAllInstances({ liveness: service.db.liveness, clock: systemClock }, entry, 20_000);
}
const chat = (model: string) => ({ model, messages: [{ role: "user", content: "hi" }], max_tokens: 5 });
const NAMES = ["private-model", "nick", "private-route", "private-vectors"];
const CALLS: readonly [string, (secret: string, model: string) => Promise<Response>][] = [
	["chat", (secret, model) => service.chat(secret, chat(model))],
	["completions", (secret, model) => service.post("/v1/completions", secret, { model, prompt: "hi", max_tokens: 5 })],
	["embeddings", (secret, model) => service.post("/v1/embeddings", secret, { model, input: "hi" })],
	["models", (secret, model) => service.get(`/v1/models/${model}`, secret)],
];
/** Status and body of an answer. `name` replaces the model's name, so that answers about two models can be compared. */
const seen = async (response: Response, model: string) =>
	[response.status, (await response.text()).replaceAll(model, "name")] as const;

const partner = await customer(["large", "partner"]);
const stranger = await customer(["large"]);

test.each(CALLS)("a private model is unknown to accounts without its tag at endpoint %s", async (name, call) => {
	const unknown = await seen(await call(stranger.secret, "no-such-model"), "no-such-model");
	if (name !== "embeddings") expect(unknown[0]).toBe(404);
	for (const model of NAMES) expect(await seen(await call(stranger.secret, model), model)).toEqual(unknown);
	const wanted = name === "embeddings" ? "private-vectors" : "nick";
	const { status } = await call(partner.secret, wanted);
	// This test's server has no completions endpoint.
	expect(status).toBe(name === "completions" ? 502 : 200);
	if (name === "chat") expect((await call(partner.secret, "private-route")).status).toBe(200);
});

test("only accounts with the tag see a private model; other accounts' routes skip it", async () => {
	const listed = async (secret: string) => {
		const { data } = (await (await service.get("/v1/models", secret)).json()) as { data: { id: string }[] };
		return data.map(({ id }) => id);
	};
	expect(await listed(stranger.secret)).toEqual(["test-model", "mixed-route"]);
	expect(await listed(partner.secret)).toEqual([
		...["test-model", "private-model", "private-vectors", "private-route", "mixed-route"],
	]);
	const served = async (secret: string) =>
		(await service.chat(secret, chat("mixed-route"))).headers.get("x-served-model");
	expect([await served(stranger.secret), await served(partner.secret)]).toEqual(["test-model", "private-model"]);
	const status = await (await service.get("/status")).text();
	expect(status).toContain("test-model");
	expect(status).not.toContain("private");
});

test("a batch with a private model fails its check like a batch with an unknown model", async () => {
	const failed = async (model: string) => {
		const { status, errors } = await batches.run(stranger.secret, [chatLine("a", "a", { model })]);
		return JSON.stringify([status, errors]).replaceAll(model, "name");
	};
	const unknown = await failed("no-such-model");
	expect(unknown).toContain("model_not_found");
	expect(await failed("private-model")).toBe(unknown);
	expect((await batches.run(partner.secret, [chatLine("a", "a", { model: "private-model" })])).status).toBe(
		"completed",
	);
});

test("the console shows a private model only to members of accounts with the tag", async () => {
	const [member, other] = [await signedUp(service), await signedUp(service)];

	await waitFor(async () => (await member.get("/api/console/public/models")).body.items.length > 0, "a report");
	const ids = async (person: Person) =>
		(await person.get("/api/console/public/models")).body.items.map(({ id }: { id: string }) => id);
	await tag(member.accountId, ["partner"]);
	expect(await ids(member)).toEqual(["test-model", "private-model", "private-vectors"]);
	for (const person of [other, newPerson(service)]) {
		expect(await ids(person)).toEqual(["test-model"]);
		expect((await person.get("/api/console/public/model?id=nick")).status).toBe(404);
	}
	expect((await member.get("/api/console/public/model?id=nick")).status).toBe(200);
});

test("an account that loses its tag loses the model immediately", async () => {
	const leaver = await customer(["partner"]);
	const post = async () => (await service.chat(leaver.secret, chat("private-model"))).status;
	expect(await post()).toBe(200);
	await tag(leaver.accountId, []);
	expect(await post()).toBe(404);
});
