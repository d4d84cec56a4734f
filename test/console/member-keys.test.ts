import { describe, expect, test } from "bun:test";
import { keysMadeBy, revokeKeysMadeBy } from "../../src/console/members/member-keys.ts";
import { changeMember } from "../../src/console/members/members.ts";
import type { Role } from "../../src/console/members/roles.ts";
import type { Statements, StatementValue } from "../../src/db/statements.ts";
import { deleteAuditBeyond } from "../../src/ops/audit.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { LONG } from "../support/long-form.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { operator, PERSON_ENV, type Person, signedUp, topUp } from "./person.ts";

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });
const owner = await signedUp(service);
await topUp(owner, await operator(service));
const at = `account=${owner.accountId}`;
const ask = { model: "test-model", messages: [{ role: "user", content: "hello" }], max_tokens: 5 };

async function member(role: Role = "developer"): Promise<Person & { userId: string }> {
	const person = await signedUp(service);
	const userId = (await person.get("/api/console/me")).body.user.id;
	await service.db.sql`insert into member (user_id, account_id, role) values (${userId}, ${owner.accountId}, ${role})`;
	return { ...person, userId };
}
const make = (person: Person, name: string) => person.send("POST", `/api/console/keys?${at}`, { name });
const works = async (secret: string) => {
	const response = await service.post("/v1/chat/completions", secret, ask);
	await response.text();
	return response.status === 200;
};
const remove = (userId: string, keys = "") => owner.send("DELETE", `/api/console/members/${userId}?${at}${keys}`);

test("removing a member requires a choice for the keys that the member created", async () => {
	const leaver = await member("admin");
	const own = (await make(leaver, "made")).body;
	const theirs = (await make(owner, "the owner's")).body;
	const rotated = (await leaver.send("POST", `/api/console/keys/${theirs.key.id}/rotate?${at}`, { graceMs: 3_600_000 }))
		.body;
	const listed = await owner.get(`/api/console/members/${leaver.userId}/keys?${at}`);
	expect(listed.body.items.map(({ id }: { id: string }) => id).sort()).toEqual([own.key.id, rotated.key.id].sort());
	// The audit log keeps the rotation, however many changes follow.
	await deleteAuditBeyond(service.db.statements, 0);
	expect((await (await member("developer")).get(`/api/console/members/${leaver.userId}/keys?${at}`)).status).toBe(403);
	const asked = await remove(leaver.userId);
	expect([asked.status, asked.body.error?.param]).toEqual([409, "keys"]);
	expect((await leaver.get(`/api/console/keys?${at}`)).status).toBe(200);
	const removed = await remove(leaver.userId, "&keys=revoke");
	expect(removed.body.revoked.sort()).toEqual([own.key.id, rotated.key.id].sort());
	expect(removed.body.fence.effective).toBe(true);
	expect([await works(own.secret), await works(rotated.secret), await works(theirs.secret)]).toEqual([
		false,
		false,
		true,
	]);
	expect((await leaver.get(`/api/console/keys?${at}`)).status).toBe(404);
});

test("keys kept at a member's removal stay valid; without keys no choice is needed", async () => {
	const [leaver, quiet] = [await member(), await member()];
	const { secret } = (await make(leaver, "kept")).body;
	expect((await remove(leaver.userId, "&keys=keep")).status).toBe(200);
	expect(await works(secret)).toBe(true);
	// Keys that were kept at the member's removal can be revoked later.
	expect((await remove(leaver.userId, "&keys=revoke")).body.revoked).toHaveLength(1);
	expect(await works(secret)).toBe(false);
	expect((await remove(quiet.userId)).body).toEqual({ removed: true, revoked: [], fence: null });
	expect((await remove("usr_nobody", "&keys=revoke")).status).toBe(404);
});

test("a failover does not undo the revocation of a removed member's keys", async () => {
	const leaver = await member();
	const ids: string[] = [];
	for (const name of ["one", "two", "three"]) ids.push((await make(leaver, name)).body.key.id);
	const { sql, statements } = service.db;
	const lost: Statements = Object.assign(
		async <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) => {
			// Simulates a standby that took over with the last revocation but without the first one and its control entry.
			if (/from control_log order by seq/.test(strings.join(" ")) && servers-- > 0)
				await sql`update api_key set state = 'active', revoked_at = null where id = ${ids[0] ?? ""}`;
			return statements<Row>(strings, ...values);
		},
		{ end: async () => {} },
	);
	let servers = 1;
	const revoked = await revokeKeysMadeBy(lost, owner.accountId, leaver.userId);
	expect(revoked.ids.sort()).toEqual(ids.sort());
	expect(await keysMadeBy(statements, owner.accountId, leaver.userId)).toEqual([]);
	const [last] = await sql`select max(seq)::int as seq from control_log where subject in ${sql(ids)}`;
	expect(revoked.entry?.seq).toBeGreaterThanOrEqual(last?.seq);
	// Simulates database servers that never keep the first revocation.
	servers = 1_000;
	await sql`update api_key set state = 'active', revoked_at = null where id = ${ids[0] ?? ""}`;
	await expect(revokeKeysMadeBy(lost, owner.accountId, leaver.userId)).rejects.toThrow("Not all keys");
	expect((await remove(leaver.userId, "&keys=revoke")).body.fence.effective).toBe(true);
});

test("a key created while its creator is removed is revoked too", async () => {
	const leaver = await member();
	const ids = [(await make(leaver, "first")).body.key.id];
	const { statements } = service.db;
	const trickling: Statements = Object.assign(
		async <Row>(strings: TemplateStringsArray, ...values: readonly StatementValue[]) => {
			if (/from control_log order by seq/.test(strings.join(" ")) && ids.length < 4)
				ids.push((await make(leaver, `on its way ${ids.length}`)).body.key.id);
			return statements<Row>(strings, ...values);
		},
		{ end: async () => {} },
	);
	expect((await revokeKeysMadeBy(trickling, owner.accountId, leaver.userId)).ids).toEqual(ids);
	expect(await keysMadeBy(statements, owner.accountId, leaver.userId)).toEqual([]);
});

test("a key created while its creator is removed shows no valid secret", async () => {
	for (let round = 0; round < (LONG ? 6 : 2); round++) {
		const leaver = await member();
		const made = Array.from({ length: 4 }, (_, nth) => make(leaver, `in the race ${nth}`));
		const taken =
			round % 2 === 0 ? remove(leaver.userId, "&keys=revoke") : change(owner, leaver.userId, "viewer", "&keys=revoke");
		const [removal, ...answers] = await Promise.all([taken, ...made]);
		expect([removal?.status, removal?.body.error]).toEqual([200, undefined]);
		for (const { status, body } of answers) if (status === 200) expect(await works(body.secret)).toBe(false);
		const left = await service.db.sql`
			select 1 from api_key k join audit_event e on e.subject = k.id and e.actor = ${leaver.userId} where k.state = 'active'`;
		expect(left.length).toBe(0);
		// Every revoked key must have an audit entry, whichever action revoked it.
		const unsaid = await service.db.sql`
			select 1 from api_key k where k.made_by = ${leaver.userId} and k.state = 'revoked'
				and not exists (select 1 from audit_event e where e.subject = k.id and e.action = 'key.revoke')`;
		expect(unsaid.length).toBe(0);
	}
});

test("the last owner cannot be removed, and the owner's keys stay valid", async () => {
	const { secret } = (await make(owner, "last")).body;
	expect((await remove((await owner.get("/api/console/me")).body.user.id, "&keys=revoke")).status).toBe(409);
	expect(await works(secret)).toBe(true);
});

const change = (by: Person, userId: string, role: string, keys = "") =>
	by.send("PATCH", `/api/console/members/${userId}?${at}${keys}`, { role });
const invitedBy = async (userId: string) =>
	(await service.db.sql`select role from invitation where invited_by = ${userId} order by role`).map(
		({ role }) => role,
	);
const invite = (by: Person, role: string) =>
	by.send("POST", `/api/console/invitations?${at}`, { email: `${crypto.randomUUID()}@example.com`, role });

test("a changed role applies at once; a role without keys requires a choice for them", async () => {
	const dev = await member();
	const { secret } = (await make(dev, "the developer's")).body;
	expect((await change(owner, dev.userId, "admin")).body).toEqual({ role: "admin", revoked: [], fence: null });
	expect((await dev.get(`/api/console/credit?${at}`)).status).toBe(200);
	const asked = await change(owner, dev.userId, "viewer");
	expect([asked.status, asked.body.error.param]).toEqual([409, "keys"]);
	expect((await make(dev, "still an admin's")).status).toBe(200);
	const changed = await change(owner, dev.userId, "viewer", "&keys=revoke");
	expect([changed.body.revoked.length, changed.body.fence.effective]).toEqual([2, true]);
	expect(await works(secret)).toBe(false);
	expect((await make(dev, "too late")).status).toBe(403);
	expect((await change(owner, dev.userId, "member")).status).toBe(400);
	const acts = await service.db
		.sql`select detail from audit_event where subject = ${dev.userId} and action = 'member.role' order by id`;
	expect(acts.map(({ detail }) => detail)).toEqual([
		{ role: "admin", keys: "kept" },
		{ role: "viewer", keys: "revoke" },
	]);
});

test("an admin can assign every role except owner; a demotion voids open invitations", async () => {
	const [admin, other] = [await member("admin"), await member("viewer")];
	const me = (await owner.get("/api/console/me")).body.user.id;
	expect((await change(admin, other.userId, "billing")).status).toBe(200);
	for (const tried of [
		await change(admin, me, "viewer"),
		await change(admin, other.userId, "owner"),
		await change(admin, admin.userId, "owner"),
		await change(other, other.userId, "admin"),
		await admin.send("DELETE", `/api/console/members/${me}?${at}&keys=revoke`),
		await invite(admin, "owner"),
	])
		expect([tried.status, tried.body.error.code]).toEqual([403, "forbidden"]);
	expect((await change(owner, me, "admin")).status).toBe(409);
	expect((await invite(admin, "developer")).status).toBe(200);
	expect((await change(owner, admin.userId, "owner")).status).toBe(200);
	const toOwner = (await invite(admin, "owner")).body;
	expect(await invitedBy(admin.userId)).toEqual(["developer", "owner"]);
	const third = await member("admin");
	// Lowers the member's role after the check of the request's rights and before the action.
	for (const role of ["billing", null] as const) {
		const late = changeMember(service.db.statements, owner.accountId, { userId: third.userId, by: other.userId, role });
		await expect(late).rejects.toMatchObject({ code: "forbidden" });
	}
	expect((await third.send("DELETE", `/api/console/invitations/${toOwner.id}?${at}`)).status).toBe(404);
	expect((await change(owner, admin.userId, "admin")).status).toBe(200);
	expect(await invitedBy(admin.userId)).toEqual(["developer"]);
	expect((await change(owner, admin.userId, "viewer", "&keys=keep")).status).toBe(200);
	expect(await invitedBy(admin.userId)).toEqual([]);
});

test("two owners who demote each other at once leave one owner", async () => {
	const me = (await owner.get("/api/console/me")).body.user.id;
	for (let round = 0; round < (LONG ? 4 : 2); round++) {
		const second = await member("owner");
		const answers = await Promise.all([
			change(owner, second.userId, "viewer", "&keys=keep"),
			change(second, me, "viewer", "&keys=keep"),
			change(second, second.userId, "owner"),
		]);
		for (const { status } of answers) expect([200, 403, 409]).toContain(status);
		const rows = await service.db.sql`
			select user_id, role from member where account_id = ${owner.accountId} and user_id in (${me}, ${second.userId})`;
		expect(rows.map(({ role }) => role).sort()).toEqual(["owner", "viewer"]);
		await service.db.sql`update member set role = 'owner' where user_id = ${me}`;
		await service.db.sql`delete from member where user_id = ${second.userId} and account_id = ${owner.accountId}`;
	}
});

describe("a developer in projects", () => {
	const call = (person: Person, method: string, path: string, body: unknown = {}) => {
		const address = `/api/console${path}${path.includes("?") ? "&" : "?"}${at}`;
		return method === "GET" ? person.get(address) : person.send(method, address, body);
	};
	const newProject = async (settings: object = {}) =>
		(await call(owner, "POST", "/projects", { name: "p", ...settings })).body as { id: string };
	const keysOf = async (person: Person) =>
		(await call(person, "GET", "/keys?limit=200")).body.items.map(({ id }: { id: string }) => id) as string[];

	test("manages keys of own projects only", async () => {
		const [dev, other] = [await member(), await member()];
		const [his, another] = [await newProject(), await newProject()];
		const before = (await make(dev, "before")).body.key.id;
		const inHis = (await call(owner, "POST", "/keys", { name: "in", projectId: his.id })).body.key.id;
		const inAnother = (await call(owner, "POST", "/keys", { name: "out", projectId: another.id })).body.key.id;
		expect((await call(dev, "GET", "/projects")).body.items).toEqual([]);
		expect(await keysOf(dev)).toEqual([before]);
		expect((await call(owner, "PUT", `/projects/${his.id}/members/${dev.userId}`)).status).toBe(200);
		expect((await call(dev, "GET", "/projects")).body.items.map(({ id }: { id: string }) => id)).toEqual([his.id]);
		expect((await call(dev, "GET", `/projects/${another.id}`)).status).toBe(404);
		expect((await call(dev, "GET", `/projects/${another.id}/members`)).status).toBe(404);
		expect(await keysOf(dev)).toEqual([inHis, before]);
		expect(await keysOf(other)).toEqual([]);
		for (const [method, path, body] of [
			["PATCH", "", { name: "x" }],
			["POST", "/rotate", { graceMs: 3_600_000 }],
		] as const) {
			expect((await call(dev, method, `/keys/${inHis}${path}`, body)).status).toBe(200);
			expect((await call(dev, method, `/keys/${inAnother}${path}`, body)).status).toBe(404);
		}
		const making = async (projectId: string | null) =>
			(await call(dev, "POST", "/keys", { name: "k", ...(projectId === null ? {} : { projectId }) })).status;
		expect([await making(null), await making(another.id), await making(his.id)]).toEqual([403, 404, 200]);
		// A key moved out of its project would escape the project's cap.
		for (const projectId of [null, another.id])
			expect((await call(dev, "PATCH", `/keys/${inHis}`, { projectId })).status).toBe(403);
		const made = (await keysOf(dev))[0] as string;
		expect((await call(owner, "PATCH", `/keys/${made}`, { projectId: another.id })).status).toBe(200);
		expect(await keysOf(dev)).not.toContain(made);
	});

	test("sees no key of a project after removal from it, whether kept or revoked", async () => {
		const dev = await member();
		const { id } = await newProject();
		await call(owner, "PUT", `/projects/${id}/members/${dev.userId}`);
		const made = (await call(dev, "POST", "/keys", { name: "his", projectId: id })).body;
		expect(await works(made.secret)).toBe(true);
		const path = `/projects/${id}/members/${dev.userId}`;
		expect((await call(owner, "DELETE", path)).body.error?.param).toBe("keys");
		expect((await call(owner, "DELETE", `${path}?keys=keep`)).body).toMatchObject({ removed: true, revoked: [] });
		expect([await keysOf(dev), await works(made.secret)]).toEqual([[], true]);
		expect((await call(dev, "POST", `/keys/${made.key.id}/rotate`, { graceMs: 0 })).status).toBe(404);
		const { body } = await call(owner, "DELETE", `${path}?keys=revoke`);
		expect([body.revoked, body.fence.effective]).toEqual([[made.key.id], true]);
		expect(await works(made.secret)).toBe(false);
		expect((await call(owner, "DELETE", path)).status).toBe(404);
		expect((await call(owner, "PUT", `/projects/${id}/members/nobody`)).status).toBe(404);
		// Removing a member from the account also removes the member from its projects.
		await call(owner, "PUT", path);
		await remove(dev.userId, "&keys=keep");
		expect((await call(owner, "GET", `/projects/${id}/members`)).body.items).toEqual([]);
	});

	test("loses the keys created in a project after removal from it, with audit entries", async () => {
		const dev = await member();
		const ofNone = (await make(dev, "of none")).body;
		const [left, other] = [await newProject(), await newProject()];
		for (const { id } of [left, other]) await call(owner, "PUT", `/projects/${id}/members/${dev.userId}`);
		const makeIn = async (person: Person, { id }: { id: string }) =>
			(await call(person, "POST", "/keys", { name: "in", projectId: id })).body;
		const [first, second] = [await makeIn(dev, left), await makeIn(dev, left)];
		const [inOther, owners] = [await makeIn(dev, other), await makeIn(owner, left)];
		const { body } = await call(owner, "DELETE", `/projects/${left.id}/members/${dev.userId}?keys=revoke`);
		expect(body.revoked.sort()).toEqual([first.key.id, second.key.id].sort());
		const good: boolean[] = [];
		for (const { secret } of [first, second, inOther, ofNone, owners]) good.push(await works(secret));
		expect(good).toEqual([false, false, true, true, true]);
		const me = (await owner.get("/api/console/me")).body.user.id;
		const acts = await service.db.sql`
			select subject, actor, detail from audit_event
			where action = 'key.revoke' and detail->>'madeBy' = ${dev.userId} order by subject`;
		const told = [first, second].map(({ key }) => ({ subject: key.id, actor: me, detail: { madeBy: dev.userId } }));
		expect(acts.map((row) => ({ ...row }))).toEqual(told.sort((a, b) => (a.subject < b.subject ? -1 : 1)));
	});

	test("loses a key that is created during the removal from the project", async () => {
		const { sql } = service.db;
		for (const act of ["make", "rotate"] as const) {
			const dev = await member();
			const { id } = await newProject();
			await call(owner, "PUT", `/projects/${id}/members/${dev.userId}`);
			const owners = (await call(owner, "POST", "/keys", { name: "the owner's", projectId: id })).body.key;
			const { answer, removal } = await sql.begin(async (holder) => {
				// The creation has checked the project, and now waits for the lock on the account's row.
				await holder`select 1 from account where id = ${owner.accountId} for no key update`;
				const answer =
					act === "make"
						? call(dev, "POST", "/keys", { name: "on its way", projectId: id })
						: call(dev, "POST", `/keys/${owners.id}/rotate`, { graceMs: 3_600_000 });
				await waitFor(async () => (await lockWaits(sql)) > 0, "his key to be on its way");
				return { answer, removal: await call(owner, "DELETE", `/projects/${id}/members/${dev.userId}?keys=revoke`) };
			});
			expect([removal.status, removal.body.revoked, removal.body.fence?.effective]).toEqual([200, [], true]);
			const { status, body } = await answer;
			expect([act, status, body.secret]).toEqual([act, 404, undefined]);
			const left = await sql`select id from api_key where project_id = ${id} and state = 'active'`;
			expect(left.map((key) => key.id)).toEqual([owners.id]);
			const told = await sql`
				select 1 from audit_event where action = 'key.revoke' and actor = ${dev.userId} and detail->>'madeBy' = ${dev.userId}`;
			expect(told).toHaveLength(1);
		}
	});

	test("can use a project's key only as the project's cap, models and state allow", async () => {
		const { id } = await newProject({ capUsd: "5", capPeriod: "month" });
		const { secret, key } = (await call(owner, "POST", "/keys", { name: "k", projectId: id })).body;
		expect(key).toMatchObject({ projectId: id, projectName: "p" });
		expect(await works(secret)).toBe(true);
		const change = async (settings: object) => (await call(owner, "PATCH", `/projects/${id}`, settings)).body;
		expect((await change({ models: ["another"] })).fence.effective).toBe(true);
		expect(await works(secret)).toBe(false);
		await change({ models: null, capUsd: "0.000000001" });
		expect(await works(secret)).toBe(false);
		await change({ capUsd: null });
		expect(await works(secret)).toBe(true);
		await service.settled();
		const seen = (await call(owner, "GET", `/projects/${id}`)).body;
		expect(seen).toMatchObject({ keys: 1, capNanoUsd: null, state: "active" });
		expect(seen.spentNanoUsd).toBeGreaterThan(0);
		expect((await call(owner, "POST", `/projects/${id}/archive`)).body.fence.effective).toBe(true);
		expect(await works(secret)).toBe(false);
		const acts = await service.db.sql`select action from audit_event where subject = ${id} order by id`;
		expect(acts.map(({ action }) => action)).toEqual([
			"project.create",
			...Array(3).fill("project.update"),
			"project.archive",
		]);
	});
});
