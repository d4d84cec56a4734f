import { expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { runHere } from "../cli/run-here.ts";
import { managementClient } from "../console/management/management-client.ts";
import { operator, PERSON_ENV, type Person, signedUp, topUp } from "../console/person.ts";
import { atEnd, temporaryFolder, untilEnd } from "../support/at-end.ts";
import { chatModel, withService } from "../support/service.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { startUpstream } from "../support/upstream-server.ts";

const LEASE_TTL_S = "8";
const upstream = untilEnd(startUpstream({ dialect: "vllm" }));
const service = await withService({
	models: chatModel({ url: upstream.url, dialect: "vllm" }),
	env: { ...PERSON_ENV, LEASE_TTL_S },
});
const { sql } = service.db;
const staff = await operator(service);
const owner = await signedUp(service);
await topUp(owner, staff);
const at = `account=${owner.accountId}`;

/** Another instance, whose way to Postgres can be cut. */
const address = new URL(service.db.url);
const proxy = untilEnd(startTcpProxy({ hostname: address.hostname, port: Number(address.port) }));
const throughProxy = new URL(service.db.url);
throughProxy.host = `127.0.0.1:${proxy.port}`;
const distant = await createApp(
	loadConfig(
		{
			PORT: "0",
			DATABASE_URL: throughProxy.href,
			DATA_DIR: temporaryFolder(),
			CONFIG: service.app.config.configPath ?? "",
			KEY_PEPPER: service.app.secrets.keyPepper,
			LEASE_TTL_S,
			DRAIN_S: "1",
		},
		service.dataDir,
	),
	{ log: silentLog },
);
atEnd(() => distant.stop());
const script = await managementClient(service);
const commandLine = {
	DATABASE_URL: service.db.url,
	DATA_DIR: temporaryFolder(),
	KEY_PEPPER: service.app.secrets.keyPepper,
	CONSOLE_SECRET: "c".repeat(32),
};

/** What an act begins with: a key, and who may act on it. */
interface Stage {
	readonly id: string;
	readonly secret: string;
	readonly accountId: string;
	/** The key's, or one into which it may be moved. */
	readonly projectId?: string;
	readonly leaver?: Person & { readonly userId: string };
}
interface Act {
	/** As the table of `src/cluster/README.md` names it. */
	readonly act: string;
	readonly from: string;
	readonly stage?: () => Promise<Stage>;
	/** Whether the answer says that it is in force everywhere. */
	readonly run: (stage: Stage) => Promise<boolean>;
}

const cli = async (...args: string[]): Promise<boolean> =>
	(await runHere([...args, "--json"], commandLine)).json<{ effective: boolean }>().effective;
const answered = ({ status, body }: { status: number; body: { fence?: { effective: boolean } } }): boolean =>
	status === 200 && body.fence?.effective === true;
const managed = async (method: string, path: string, body: object = {}) => {
	const answer = await script.send(method, path, body);
	return answer.status === 200 && answer.body.in_force.effective;
};
const change = async ({ id }: Stage, body: object) =>
	answered(await owner.send("PATCH", `/api/console/keys/${id}?${at}`, body));

async function ownedKey(): Promise<Stage> {
	const settings = { capUsd: "10", requestsPerMinute: 1000, concurrencyMax: 100 };
	const { status, body } = await owner.send("POST", `/api/console/keys?${at}`, { name: "staged", ...settings });
	expect(status).toBe(200);
	return { id: body.key.id, secret: body.secret, accountId: owner.accountId };
}
async function customersKey(): Promise<Stage> {
	const { accountId, keyId, secret } = await service.customer();
	return { id: keyId, secret, accountId };
}
async function madeProject(settings: object): Promise<string> {
	const { status, body } = await owner.send("POST", `/api/console/projects?${at}`, { name: "staged", ...settings });
	expect(status).toBe(200);
	return body.id;
}
async function keyIn(projectId: string, person: Person = owner): Promise<Stage> {
	const { status, body } = await person.send("POST", `/api/console/keys?${at}`, { name: "staged", projectId });
	expect(status).toBe(200);
	return { id: body.key.id, secret: body.secret, accountId: owner.accountId, projectId };
}
const projectsKey = async () =>
	keyIn(await madeProject({ capUsd: "10", requestsPerMinute: 1000, concurrencyMax: 100 }));
const keyToMove = async () => ({ ...(await ownedKey()), projectId: await madeProject({ models: ["another"] }) });
async function projectMembersKey(): Promise<Stage> {
	const { leaver } = await membersKey("member")();
	const projectId = await madeProject({});
	const added = await owner.send("PUT", `/api/console/projects/${projectId}/members/${leaver?.userId}?${at}`);
	expect(added.status).toBe(200);
	return { ...(await keyIn(projectId, leaver)), ...(leaver ? { leaver } : {}) };
}
const membersKey = (role: "owner" | "member") => async (): Promise<Stage> => {
	const person = await signedUp(service);
	const userId = (await person.get("/api/console/me")).body.user.id;
	await sql`insert into member (user_id, account_id, role) values (${userId}, ${owner.accountId}, ${role})`;
	const { body } = await person.send("POST", `/api/console/keys?${at}`, { name: "a member's", capUsd: "10" });
	return { id: body.key.id, secret: body.secret, accountId: owner.accountId, leaver: { ...person, userId } };
};
const removeMember = async (by: Person, { leaver }: Stage) =>
	answered(await by.send("DELETE", `/api/console/members/${leaver?.userId}?${at}&keys=revoke`));

const soon = () => Date.now() + 500;
const narrowing: [act: string, option: () => [string, string], body: () => object, managed: () => object][] = [
	[
		"take models from a key",
		() => ["--models", "another"],
		() => ({ models: ["another"] }),
		() => ({ models: ["another"] }),
	],
	[
		"bring a key's expiry forward",
		() => ["--expires", new Date(soon()).toISOString()],
		() => ({ expiresAtMs: soon() }),
		() => ({ expires_at: new Date(soon()).toISOString() }),
	],
	[
		"lower a key's cap",
		() => ["--cap-usd", "0.000001"],
		() => ({ capUsd: "0.000001" }),
		() => ({ cap_usd: "0.000001" }),
	],
	[
		"lower a key's requests a minute",
		() => ["--requests-per-minute", "1"],
		() => ({ requestsPerMinute: 1 }),
		() => ({ requests_per_minute: 1 }),
	],
	[
		"lower a key's requests at once",
		() => ["--concurrency", "1"],
		() => ({ concurrencyMax: 1 }),
		() => ({ concurrency: 1 }),
	],
];
const acts: Act[] = [
	{ act: "revoke a key", from: "`key revoke`", run: ({ id }) => cli("key", "revoke", id) },
	{
		act: "revoke a key",
		from: "console",
		run: async ({ id }) => answered(await owner.send("POST", `/api/console/keys/${id}/revoke?${at}`)),
	},
	{
		act: "replace a key without grace",
		from: "`key rotate`",
		run: ({ id }) => cli("key", "rotate", id, "--grace", "0"),
	},
	{
		act: "replace a key without grace",
		from: "console",
		run: async ({ id }) => answered(await owner.send("POST", `/api/console/keys/${id}/rotate?${at}`, { graceMs: 0 })),
	},
	...narrowing.flatMap(([act, option, body, managedBody]): Act[] => [
		{ act, from: "`key update`", run: ({ id }) => cli("key", "update", id, ...option()) },
		{ act, from: "console", run: (stage) => change(stage, body()) },
		{ act, from: "management", run: ({ id }) => managed("PATCH", `/keys/${id}`, managedBody()) },
	]),
	{ act: "revoke a key", from: "management", run: ({ id }) => managed("POST", `/keys/${id}/revoke`) },
	{
		act: "replace a key without grace",
		from: "management",
		run: ({ id }) => managed("POST", `/keys/${id}/rotate`, { grace_seconds: 0 }),
	},
	...narrowing
		.filter(([act]) => !act.includes("expiry"))
		.flatMap(([act, option, body, managedBody]): Act[] => [
			{
				act: act.replace("a key", "a project"),
				from: "management",
				stage: projectsKey,
				run: ({ projectId }) => managed("PATCH", `/projects/${projectId}`, managedBody()),
			},
			{
				act: act.replace("a key", "a project"),
				from: "`project update`",
				stage: projectsKey,
				run: ({ projectId = "" }) => cli("project", "update", projectId, ...option()),
			},
			{
				act: act.replace("a key", "a project"),
				from: "console",
				stage: projectsKey,
				run: async ({ projectId }) =>
					answered(await owner.send("PATCH", `/api/console/projects/${projectId}?${at}`, body())),
			},
		]),
	{
		act: "archive a project",
		from: "`project archive`",
		stage: projectsKey,
		run: ({ projectId = "" }) => cli("project", "archive", projectId),
	},
	{
		act: "archive a project",
		from: "management",
		stage: projectsKey,
		run: ({ projectId }) => managed("POST", `/projects/${projectId}/archive`),
	},
	{
		act: "archive a project",
		from: "console",
		stage: projectsKey,
		run: async ({ projectId }) =>
			answered(await owner.send("POST", `/api/console/projects/${projectId}/archive?${at}`)),
	},
	{
		act: "move a key into a project that may less",
		from: "console",
		stage: keyToMove,
		run: (stage) => change(stage, { projectId: stage.projectId }),
	},
	{
		act: "move a key into a project that may less",
		from: "management",
		stage: keyToMove,
		run: ({ id, projectId }) => managed("PATCH", `/keys/${id}`, { project_id: projectId }),
	},
	{
		act: "remove somebody from a project, his keys of it revoked",
		from: "console",
		stage: projectMembersKey,
		run: async ({ projectId, leaver }) =>
			answered(
				await owner.send("DELETE", `/api/console/projects/${projectId}/members/${leaver?.userId}?${at}&keys=revoke`),
			),
	},
	{
		act: "remove somebody from a project, his keys of it revoked",
		from: "management",
		stage: projectMembersKey,
		run: ({ projectId, leaver }) =>
			managed("POST", `/projects/${projectId}/members/remove`, { user_id: leaver?.userId, keys: "revoke" }),
	},
	{
		act: "remove somebody from a project, his keys of it revoked",
		from: "`project member remove`",
		stage: projectMembersKey,
		run: ({ projectId = "", leaver }) =>
			cli("project", "member", "remove", projectId, leaver?.userId ?? "", "--keys", "revoke"),
	},
	{
		act: "suspend an account",
		from: "management",
		stage: customersKey,
		run: ({ accountId }) => managed("PATCH", `/accounts/${accountId}`, { state: "suspended", reason: "a test" }),
	},
	{
		act: "suspend an account",
		from: "`account suspend`",
		stage: customersKey,
		run: ({ accountId }) => cli("account", "suspend", accountId),
	},
	{
		act: "suspend an account",
		from: "operators' pages",
		stage: customersKey,
		run: async ({ accountId }) =>
			answered(await staff.send("POST", `/api/console/operator/accounts/${accountId}/suspend`, { reason: "a test" })),
	},
	{
		act: "remove a member whose keys are revoked",
		from: "console",
		stage: membersKey("member"),
		run: (stage) => removeMember(owner, stage),
	},
	{
		act: "leave an account, one's keys revoked",
		from: "console",
		stage: membersKey("owner"),
		run: (stage) => removeMember(stage.leaver as Person, stage),
	},
];

/** Whether the instance that is cut off serves a request with the key. */
async function served(secret: string): Promise<boolean> {
	const response = await fetch(`${distant.url}/v1/chat/completions`, {
		method: "POST",
		headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
		body: JSON.stringify({ model: "test-model", messages: [{ role: "user", content: "hello" }], max_tokens: 5 }),
	});
	await response.text();
	return response.status === 200;
}

test("the acts that are tried are those of the table", async () => {
	const paper = await Bun.file(new URL("../../src/cluster/README.md", import.meta.url)).text();
	const rows = [
		...paper
			.slice(paper.indexOf("| act | from |"))
			.split("\n\n", 1)
			.join("")
			.matchAll(/^\| (.+) \| (.+) \|$/gm),
	];
	const listed = rows.slice(1).flatMap(([, act, from]) => (from ?? "").split(", ").map((one) => `${act} by ${one}`));
	expect(acts.map(({ act, from }) => `${act} by ${from}`).sort()).toEqual(listed.sort());
});

test("a rotation whose wait Postgres breaks off shows its secret, and repeated by its token the same one", async () => {
	const old = await ownedKey();
	const rotate = (token: string) =>
		owner.send("POST", `/api/console/keys/${old.id}/rotate?${at}`, { graceMs: 0, token });
	const [question] =
		await sql`select p.oid::regprocedure::text as name from pg_proc p where p.proname = 'instance_lagging'`;
	await sql.unsafe(`alter function ${question?.name} rename to instance_lagging_away`);
	const token = crypto.randomUUID();
	const first = await rotate(token);
	expect([first.status, first.body.fence.effective, first.body.fence.known]).toEqual([200, false, false]);
	await sql.unsafe(
		`alter function ${String(question?.name).replace("instance_lagging", "instance_lagging_away")} rename to instance_lagging`,
	);
	const again = await rotate(token);
	expect([again.body.key.id, again.body.secret]).toEqual([first.body.key.id, first.body.secret]);
	expect(again.body.fence.effective).toBe(true);
	expect([await served(old.secret), await served(again.body.secret)]).toEqual([false, true]);
	expect((await rotate(crypto.randomUUID())).status).toBe(409);
});

test("no act is said to be in force where a standby took over before the wait, and gave its number to another entry", async () => {
	const staged: [Act, Stage][] = [];
	for (const act of acts) staged.push([act, await (act.stage ?? ownedKey)()]);
	const [question] = await sql`
		select n.nspname as schema, pg_get_functiondef(p.oid) as definition
		from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.proname = 'instance_lagging'`;
	const name = `${question?.schema}.instance_lagging`;
	await sql.unsafe(`alter function ${name} rename to instance_lagging_there`);
	await sql.unsafe(`
		create function ${name}(p_seq bigint, p_at_micros bigint)
		returns table (id text, epoch integer, beat bigint, ttl_ms integer, lease_until timestamptz) language plpgsql as $$
		begin
		  update control_log l set at = l.at + interval '1 microsecond' where l.seq = p_seq and control_at(l.at) = p_at_micros;
		  return query select * from instance_lagging_there(p_seq, p_at_micros);
		end $$`);
	const said = await Promise.all(
		staged.map(async ([{ act, from, run }, stage]) => ({ act: `${act} by ${from}`, inForce: await run(stage) })),
	);
	await sql.unsafe(`drop function ${name}`);
	await sql.unsafe(`alter function ${name}_there rename to instance_lagging`);
	expect(said).toEqual(acts.map(({ act, from }) => ({ act: `${act} by ${from}`, inForce: false })));
	expect(await cli("key", "revoke", staged[0]?.[1].id ?? "")).toBe(true);
}, 60_000);

test("when an act that takes a right away has returned, an instance that is cut off admits nothing by it any more", async () => {
	const staged: [Act, Stage][] = [];
	for (const act of acts) staged.push([act, await (act.stage ?? ownedKey)()]);
	const serving = () => Promise.all(staged.map(([, { secret }]) => served(secret)));
	const all = Array(staged.length).fill(true);
	expect(await serving()).toEqual(all);
	proxy.freeze();
	// It does not know yet that it is cut off. On a busy machine its time is over before it has served them all.
	expect(await serving()).toContain(true);
	const outcomes = await Promise.all(
		staged.map(async ([{ act, from, run }, stage]) => {
			const effective = await run(stage);
			return { act: `${act} by ${from}`, effective, servedAfter: await served(stage.secret) };
		}),
	);
	expect(outcomes).toEqual(
		staged.map(([{ act, from }]) => ({ act: `${act} by ${from}`, effective: true, servedAfter: false })),
	);
}, 60_000);
