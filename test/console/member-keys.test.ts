import { expect, test } from "bun:test";
import { untilEnd } from "../support/at-end.ts";
import { chatModel, withService } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { operator, PERSON_ENV, type Person, signedUp, topUp } from "./person.ts";

const upstream = untilEnd(startUpstream({ dialect: "vllm" }));
const service = await withService({ models: chatModel({ url: upstream.url, dialect: "vllm" }), env: PERSON_ENV });
const owner = await signedUp(service);
await topUp(owner, await operator(service));
const at = `account=${owner.accountId}`;
const ask = { model: "test-model", messages: [{ role: "user", content: "hello" }], max_tokens: 5 };

async function member(): Promise<Person & { userId: string }> {
	const person = await signedUp(service);
	const userId = (await person.get("/api/console/me")).body.user.id;
	await service.db.sql`insert into member (user_id, account_id, role) values (${userId}, ${owner.accountId}, 'member')`;
	return { ...person, userId };
}
const make = (person: Person, name: string) => person.send("POST", `/api/console/keys?${at}`, { name });
const works = async (secret: string) => {
	const response = await service.post("/v1/chat/completions", secret, ask);
	await response.text();
	return response.status === 200;
};
const remove = (userId: string, keys = "") => owner.send("DELETE", `/api/console/members/${userId}?${at}${keys}`);

test("an owner who removes a member is asked what becomes of the keys that this one made or rotated", async () => {
	const leaver = await member();
	const own = (await make(leaver, "made")).body;
	const theirs = (await make(owner, "the owner's")).body;
	const rotated = (await leaver.send("POST", `/api/console/keys/${theirs.key.id}/rotate?${at}`, { graceMs: 3_600_000 }))
		.body;
	const listed = await owner.get(`/api/console/members/${leaver.userId}/keys?${at}`);
	expect(listed.body.items.map(({ id }: { id: string }) => id).sort()).toEqual([own.key.id, rotated.key.id].sort());
	expect((await leaver.get(`/api/console/members/${leaver.userId}/keys?${at}`)).status).toBe(403);
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

test("keys that are kept work on, and one who made none is removed without a question", async () => {
	const [leaver, quiet] = [await member(), await member()];
	const { secret } = (await make(leaver, "kept")).body;
	expect((await remove(leaver.userId, "&keys=keep")).status).toBe(200);
	expect(await works(secret)).toBe(true);
	// Thought better of: what he made can still be revoked in the same way.
	expect((await remove(leaver.userId, "&keys=revoke")).body.revoked).toHaveLength(1);
	expect(await works(secret)).toBe(false);
	expect((await remove(quiet.userId)).body).toEqual({ removed: true, revoked: [], fence: null });
	expect((await remove("usr_nobody", "&keys=revoke")).status).toBe(404);
});

test("of a key that is made while its maker is removed no secret is both shown and good", async () => {
	for (let round = 0; round < 4; round++) {
		const leaver = await member();
		const made = Array.from({ length: 4 }, (_, nth) => make(leaver, `in the race ${nth}`));
		const [removal, ...answers] = await Promise.all([remove(leaver.userId, "&keys=revoke"), ...made]);
		expect(removal?.status).toBe(200);
		for (const { status, body } of answers) if (status === 200) expect(await works(body.secret)).toBe(false);
		const left = await service.db.sql`
			select 1 from api_key k join audit_event e on e.subject = k.id and e.actor = ${leaver.userId} where k.state = 'active'`;
		expect(left.length).toBe(0);
	}
});

test("the last owner stays, and keeps the keys", async () => {
	const { secret } = (await make(owner, "last")).body;
	const { body } = await owner.get("/api/console/me");
	expect((await remove(body.user.id, "&keys=revoke")).status).toBe(409);
	expect(await works(secret)).toBe(true);
});
