import { expect } from "bun:test";
import { type Person, signedUp } from "../console/person.ts";
import { LONG } from "../support/long-form.ts";
import type { CutOffWorld } from "./cut-off-world.ts";

/** The objects that an action changes: a key and the people concerned. */
export interface ActStage {
	readonly id: string;
	readonly secret: string;
	readonly accountId: string;
	/** Id of the key's project, or of one to which the key can be moved. */
	readonly projectId?: string;
	readonly leaver?: Person & { readonly userId: string };
}
export interface RightTakingAct {
	/** Name of the action in the table of `src/cluster/README.md`. */
	readonly act: string;
	readonly from: string;
	readonly stage?: () => Promise<ActStage>;
	readonly run: (stage: ActStage) => Promise<boolean>;
}

const answered = ({ status, body }: { status: number; body: { fence?: { effective: boolean } } }): boolean =>
	status === 200 && body.fence?.effective === true;

/**
 * Actions that only the long run tests. Narrowing, archiving, moving and removing have several callers that share a
 * function, so the short run tests one caller of each.
 */
function waitingTheirTurn(acts: readonly RightTakingAct[]): ReadonlySet<RightTakingAct> {
	const taking = Map.groupBy(
		acts.filter(({ act }) => /^(take models from|bring|lower|archive|move|remove a member from a project) ?/.test(act)),
		({ act }) => act,
	);
	return new Set([...taking.values()].flatMap((ways, at) => ways.filter((_, way) => way !== at % ways.length)));
}

export function rightTakingActs({ service, staff, owner, at, cli, managed }: CutOffWorld) {
	const { sql } = service.db;
	const change = async ({ id }: ActStage, body: object) =>
		answered(await owner.send("PATCH", `/api/console/keys/${id}?${at}`, body));

	async function ownedKey(): Promise<ActStage> {
		const settings = { capUsd: "10", requestsPerMinute: 1000, concurrencyMax: 100 };
		const { status, body } = await owner.send("POST", `/api/console/keys?${at}`, { name: "staged", ...settings });
		expect(status).toBe(200);
		return { id: body.key.id, secret: body.secret, accountId: owner.accountId };
	}
	async function customersKey(): Promise<ActStage> {
		const { accountId, keyId, secret } = await service.customer();
		return { id: keyId, secret, accountId };
	}
	async function madeProject(settings: object): Promise<string> {
		const { status, body } = await owner.send("POST", `/api/console/projects?${at}`, { name: "staged", ...settings });
		expect(status).toBe(200);
		return body.id;
	}
	async function keyIn(projectId: string, person: Person = owner): Promise<ActStage> {
		const { status, body } = await person.send("POST", `/api/console/keys?${at}`, { name: "staged", projectId });
		expect(status).toBe(200);
		return { id: body.key.id, secret: body.secret, accountId: owner.accountId, projectId };
	}
	const projectsKey = async () =>
		keyIn(await madeProject({ capUsd: "10", requestsPerMinute: 1000, concurrencyMax: 100 }));
	const keyToMove = async () => ({ ...(await ownedKey()), projectId: await madeProject({ models: ["another"] }) });
	async function projectMembersKey(): Promise<ActStage> {
		const { leaver } = await membersKey("developer")();
		const projectId = await madeProject({});
		const added = await owner.send("PUT", `/api/console/projects/${projectId}/members/${leaver?.userId}?${at}`);
		expect(added.status).toBe(200);
		return { ...(await keyIn(projectId, leaver)), ...(leaver ? { leaver } : {}) };
	}
	const membersKey = (role: "owner" | "developer") => async (): Promise<ActStage> => {
		const person = await signedUp(service);
		const userId = (await person.get("/api/console/me")).body.user.id;
		await sql`insert into member (user_id, account_id, role) values (${userId}, ${owner.accountId}, ${role})`;
		const { body } = await person.send("POST", `/api/console/keys?${at}`, { name: "a member's", capUsd: "10" });
		return { id: body.key.id, secret: body.secret, accountId: owner.accountId, leaver: { ...person, userId } };
	};
	const removeMember = async (by: Person, { leaver }: ActStage) =>
		answered(await by.send("DELETE", `/api/console/members/${leaver?.userId}?${at}&keys=revoke`));

	// A time in the near future: far enough that a slow machine sends the request before, because past times are refused.
	const soon = () => Date.now() + 5_000;
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
		[
			"lower a key's tokens a minute",
			() => ["--tokens-per-minute", "1"],
			() => ({ tokensPerMinute: 1 }),
			() => ({ tokens_per_minute: 1 }),
		],
	];
	const acts: readonly RightTakingAct[] = [
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
		...narrowing.flatMap(([act, option, body, managedBody]): RightTakingAct[] => [
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
			.flatMap(([act, option, body, managedBody]): RightTakingAct[] => [
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
			act: "remove a member from a project, with keys revoked",
			from: "console",
			stage: projectMembersKey,
			run: async ({ projectId, leaver }) =>
				answered(
					await owner.send("DELETE", `/api/console/projects/${projectId}/members/${leaver?.userId}?${at}&keys=revoke`),
				),
		},
		{
			act: "remove a member from a project, with keys revoked",
			from: "management",
			stage: projectMembersKey,
			run: ({ projectId, leaver }) =>
				managed("POST", `/projects/${projectId}/members/remove`, { user_id: leaver?.userId, keys: "revoke" }),
		},
		{
			act: "remove a member from a project, with keys revoked",
			from: "`project member remove`",
			stage: projectMembersKey,
			run: ({ projectId = "", leaver }) =>
				cli("project", "member", "remove", projectId, leaver?.userId ?? "", "--keys", "revoke"),
		},
		{
			act: "lower an account's tokens a minute",
			from: "`account update`",
			stage: customersKey,
			run: ({ accountId }) => cli("account", "update", accountId, "--tokens-per-minute", "1", "--tags", "small"),
		},
		{
			act: "lower an account's tokens a minute",
			from: "management",
			stage: customersKey,
			run: ({ accountId }) => managed("PATCH", `/accounts/${accountId}`, { tokens_per_minute: 1, tags: ["small"] }),
		},
		{
			act: "lower an account's tokens a minute",
			from: "operators' pages",
			stage: customersKey,
			run: async ({ accountId }) =>
				answered(
					await staff.send("PUT", `/api/console/operator/accounts/${accountId}/terms`, {
						tokensPerMinute: 1,
						tags: [],
					}),
				),
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
			stage: membersKey("developer"),
			run: (stage) => removeMember(owner, stage),
		},
		{
			act: "leave an account, with keys revoked",
			from: "console",
			stage: membersKey("owner"),
			run: (stage) => removeMember(stage.leaver as Person, stage),
		},
	];

	const others = LONG ? new Set<RightTakingAct>() : waitingTheirTurn(acts);
	return {
		acts,
		ownedKey,
		/** Prepares the actions one after the other, with about a hundred requests to the console. */
		async staged(some?: ReadonlySet<RightTakingAct>): Promise<readonly (readonly [RightTakingAct, ActStage])[]> {
			const all: [RightTakingAct, ActStage][] = [];
			for (const act of acts) if (some?.has(act) ?? !others.has(act)) all.push([act, await (act.stage ?? ownedKey)()]);
			return all;
		},
	};
}
