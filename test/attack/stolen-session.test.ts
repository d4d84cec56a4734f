import { expect, test } from "bun:test";
import { mailedLink, newPerson, PASSWORD, PERSON_ENV, type Person, signedUp } from "../console/person.ts";
import { untilEnd } from "../support/at-end.ts";
import { chatModel } from "../support/service.ts";
import { startUpstream } from "../support/upstream-server.ts";
import { withProduct } from "./product.ts";

/** A session without the password, as a page that was left open or a stolen cookie: what it can do after a while. */

const upstream = untilEnd(startUpstream());
const models = chatModel({ url: upstream.url });
const product = await withProduct({ models, env: { ROLE: "all", ...PERSON_ENV } });
const { sql } = product.db;

const again = (person: Person, password: unknown) => person.send("POST", "/api/console/reauthenticate", { password });
const minutesPass = (minutes: number) => sql`
	update session set created_at = created_at - ${minutes}::float8 * interval '1 minute',
		authenticated_at = authenticated_at - ${minutes}::float8 * interval '1 minute'`;

/** An owner with a capped key and an uncapped one, and another member. */
async function household() {
	const [owner, other] = [await signedUp(product), await signedUp(product)];
	const make = async (body: object) => (await owner.send("POST", "/api/console/keys", body)).body.key.id as string;
	const capped = await make({ name: "capped", capUsd: "200" });
	const open = await make({ name: "open" });
	await owner.send("POST", "/api/console/invitations", { email: other.email, role: "member" });
	const token = new URL(await mailedLink(other)).searchParams.get("token");
	expect((await other.send("POST", "/api/console/invitations/accept", { token })).status).toBe(200);
	const [row] = await sql`select id from console_user where email = ${other.email}`;
	const acts: [string, string, object][] = [
		["POST", "/keys", { name: "x" }],
		["POST", "/keys", { name: "x", capUsd: null }],
		["POST", "/keys", { name: "x", capUsd: "100.01" }],
		["POST", "/keys", { name: "x", capUsd: "9000000" }],
		["PATCH", `/keys/${capped}`, { capUsd: null }],
		["PATCH", `/keys/${capped}`, { capUsd: "200.01" }],
		["POST", `/keys/${capped}/rotate`, { graceMs: 0 }],
		["POST", "/invitations", { email: `${crypto.randomUUID()}@example.com`, role: "owner" }],
		["DELETE", `/members/${row?.id}`, {}],
	];
	const spared: [string, string, object][] = [
		["POST", "/keys", { name: "small", capUsd: "100" }],
		["PATCH", `/keys/${capped}`, { capUsd: "150" }],
		["PATCH", `/keys/${open}`, { capUsd: "5000" }],
		["PATCH", `/keys/${capped}`, { name: "renamed" }],
		["POST", `/keys/${open}/revoke`, {}],
	];
	return { owner, acts, spared };
}
const act = (person: Person, [method, path, body]: [string, string, object]) =>
	person.send(method, `/api/console${path}`, body);
const state = async () =>
	JSON.stringify(
		await sql`
			select (select count(*)::int from api_key) as keys, (select count(*)::int from member) as members,
				(select count(*)::int from invitation) as invitations, (select sum(cap_nano_usd)::text from api_key) as caps`,
	);

test("after a quarter of an hour each sensitive act asks for the password, and does nothing without it", async () => {
	const { owner, acts, spared } = await household();
	await minutesPass(16);
	const before = await state();
	for (const one of acts) {
		const { status, body } = await act(owner, one);
		expect([one, status, body.error?.code]).toEqual([one, 403, "reauthentication_required"]);
	}
	expect(await state()).toBe(before);
	for (const one of spared) expect([one, (await act(owner, one)).status]).toEqual([one, 200]);
	expect((await again(owner, PASSWORD)).body).toEqual({ authenticated: true });
	await minutesPass(14);
	for (const one of acts) expect([one, (await act(owner, one)).status]).toEqual([one, 200]);
	await minutesPass(2);
	expect((await act(owner, acts[0] as [string, string, object])).status).toBe(403);
}, 60_000);

test("only the password does it, for this session alone, and it cannot be guessed", async () => {
	const owner = await signedUp(product);
	const phone = newPerson(product, owner.email);
	await phone.send("POST", "/api/auth/sign-in/email", { email: owner.email, password: PASSWORD });
	await minutesPass(60);
	const rotate = (person: Person) => act(person, ["POST", "/keys", { name: "x" }]);
	// What a client says of its session itself.
	const claim = { authenticatedAt: new Date().toISOString(), authenticated_at: Date.now(), createdAt: new Date() };
	for (const path of ["update-session", "update-user", "get-session"])
		await owner.send("POST", `/api/auth/${path}`, { ...claim, session: claim });
	expect((await rotate(owner)).status).toBe(403);
	for (const odd of [undefined, null, 7, {}, [PASSWORD], "", "\0", "x".repeat(200)])
		expect([400, 422]).toContain((await again(owner, odd)).status);
	const guesses = await Promise.all(Array.from({ length: 24 }, (_, nth) => again(owner, `wrong password ${nth}`)));
	const statuses = guesses.map(({ status }) => status);
	expect(statuses.filter((status) => status === 400).length).toBeLessThanOrEqual(10);
	expect((await again(owner, PASSWORD)).status).toBe(429);
	// The same person's other session is not held up by the guesses, and gets nothing from anybody else's password.
	const other = await signedUp(product);
	expect((await again(other, PASSWORD)).status).toBe(200);
	expect((await rotate(phone)).status).toBe(403);
	expect((await again(phone, PASSWORD)).status).toBe(200);
	expect([(await rotate(phone)).status, (await rotate(owner)).status]).toEqual([200, 403]);
	expect((await again(newPerson(product), PASSWORD)).status).toBe(401);
});
