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
	/** True if the console reports the act as effective everywhere. */
	const asked = async (by: Person, method: string, path: string, body?: object): Promise<boolean> => {
		const query = by === staff ? "" : `${path.includes("?") ? "&" : "?"}${at}`;
		const answer = await by.send(method, `/api/console${path}${query}`, body);
		return answer.status === 200 && answer.body.fence?.effective === true;
	};

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
	const removeMember = (by: Person, { leaver }: ActStage) =>
		asked(by, "DELETE", `/members/${leaver?.userId}?keys=revoke`);

	// A time in the near future: far enough that a slow machine sends the request before, because past times are refused.
	const soon = () => Date.now() + 5_000;
	/** An act that its callers perform in different ways. */
	const act = (
		name: string,
		stage: (() => Promise<ActStage>) | undefined,
		ways: Record<string, RightTakingAct["run"]>,
	) =>
		Object.entries(ways).map(([from, run]): RightTakingAct => ({ act: name, from, run, ...(stage ? { stage } : {}) }));
	const limits: readonly [act: string, option: string, field: string, managed: string, value: unknown][] = [
		["take models from", "--models", "models", "models", ["another"]],
		["lower a cap of", "--cap-usd", "capUsd", "cap_usd", "0.000001"],
		["lower requests a minute of", "--requests-per-minute", "requestsPerMinute", "requests_per_minute", 1],
		["lower requests at once of", "--concurrency", "concurrencyMax", "concurrency", 1],
		["lower tokens a minute of", "--tokens-per-minute", "tokensPerMinute", "tokens_per_minute", 1],
	];
	/** The act's name in the table: "lower a cap of" a key is "lower a key's cap". */
	const named = (name: string, whose: string) =>
		name.replace(/^lower (?:a )?(.+) of$/, `lower a ${whose}'s $1`).replace(/ from$/, ` from a ${whose}`);
	const acts: readonly RightTakingAct[] = [
		...act("revoke a key", undefined, {
			"`key revoke`": ({ id }) => cli("key", "revoke", id),
			console: ({ id }) => asked(owner, "POST", `/keys/${id}/revoke`),
			management: ({ id }) => managed("POST", `/keys/${id}/revoke`),
		}),
		...act("replace a key without grace", undefined, {
			"`key rotate`": ({ id }) => cli("key", "rotate", id, "--grace", "0"),
			console: ({ id }) => asked(owner, "POST", `/keys/${id}/rotate`, { graceMs: 0 }),
			management: ({ id }) => managed("POST", `/keys/${id}/rotate`, { grace_seconds: 0 }),
		}),
		...act("bring a key's expiry forward", undefined, {
			"`key update`": ({ id }) => cli("key", "update", id, "--expires", new Date(soon()).toISOString()),
			console: ({ id }) => asked(owner, "PATCH", `/keys/${id}`, { expiresAtMs: soon() }),
			management: ({ id }) => managed("PATCH", `/keys/${id}`, { expires_at: new Date(soon()).toISOString() }),
		}),
		...limits.flatMap(([name, option, field, managedField, value]) => [
			...act(named(name, "key"), undefined, {
				"`key update`": ({ id }) => cli("key", "update", id, option, String(value)),
				console: ({ id }) => asked(owner, "PATCH", `/keys/${id}`, { [field]: value }),
				management: ({ id }) => managed("PATCH", `/keys/${id}`, { [managedField]: value }),
			}),
			...act(named(name, "project"), projectsKey, {
				management: ({ projectId }) => managed("PATCH", `/projects/${projectId}`, { [managedField]: value }),
				"`project update`": ({ projectId = "" }) => cli("project", "update", projectId, option, String(value)),
				console: ({ projectId }) => asked(owner, "PATCH", `/projects/${projectId}`, { [field]: value }),
			}),
		]),
		...act("archive a project", projectsKey, {
			"`project archive`": ({ projectId = "" }) => cli("project", "archive", projectId),
			management: ({ projectId }) => managed("POST", `/projects/${projectId}/archive`),
			console: ({ projectId }) => asked(owner, "POST", `/projects/${projectId}/archive`),
		}),
		...act("move a key into a project with fewer rights", keyToMove, {
			console: ({ id, projectId }) => asked(owner, "PATCH", `/keys/${id}`, { projectId }),
			management: ({ id, projectId }) => managed("PATCH", `/keys/${id}`, { project_id: projectId }),
		}),
		...act("remove a member from a project, with keys revoked", projectMembersKey, {
			console: ({ projectId, leaver }) =>
				asked(owner, "DELETE", `/projects/${projectId}/members/${leaver?.userId}?keys=revoke`),
			management: ({ projectId, leaver }) =>
				managed("POST", `/projects/${projectId}/members/remove`, { user_id: leaver?.userId, keys: "revoke" }),
			"`project member remove`": ({ projectId = "", leaver }) =>
				cli("project", "member", "remove", projectId, leaver?.userId ?? "", "--keys", "revoke"),
		}),
		...act("lower an account's tokens a minute", customersKey, {
			"`account update`": ({ accountId }) =>
				cli("account", "update", accountId, "--tokens-per-minute", "1", "--tags", "small"),
			management: ({ accountId }) =>
				managed("PATCH", `/accounts/${accountId}`, { tokens_per_minute: 1, tags: ["small"] }),
			"operators' pages": ({ accountId }) =>
				asked(staff, "PUT", `/operator/accounts/${accountId}/terms`, { tokensPerMinute: 1, tags: [] }),
		}),
		...act("suspend an account", customersKey, {
			management: ({ accountId }) =>
				managed("PATCH", `/accounts/${accountId}`, { state: "suspended", reason: "a test" }),
			"`account suspend`": ({ accountId }) => cli("account", "suspend", accountId),
			"operators' pages": ({ accountId }) =>
				asked(staff, "POST", `/operator/accounts/${accountId}/suspend`, { reason: "a test" }),
		}),
		...act("remove a member whose keys are revoked", membersKey("developer"), {
			console: (stage) => removeMember(owner, stage),
		}),
		...act("leave an account, with keys revoked", membersKey("owner"), {
			console: (stage) => removeMember(stage.leaver as Person, stage),
		}),
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
