import { expect, test } from "bun:test";
import { mailedLink, newPerson, PERSON_ENV, signedUp } from "../console/person.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { withService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { createDevice } from "./passkey.ts";

/** A password reset ends the passkeys of other people, even while they sign in. */

const service = await withService({ env: PERSON_ENV });
const { sql } = service.db;
await sql`
	create function test_held() returns trigger language plpgsql as $$
	begin
		perform pg_advisory_xact_lock(42);
		return coalesce(new, old);
	end $$`;

async function withPasskey() {
	const owner = await signedUp(service);
	const device = createDevice();
	const [row] = await sql`
		insert into passkey (id, user_id, name, public_key, counter)
		select ${device.id}, id, 'a device', ${device.publicKey}, 0 from console_user where email = ${owner.email} returning user_id`;
	const thief = newPerson(service);
	return {
		owner,
		thief,
		userId: row?.user_id as string,
		async signIn(): Promise<number> {
			const begun = await thief.send("POST", "/api/auth/passkey/sign-in-begin", {});
			const response = device.answer(begun.body.challenge, service.url);
			return (await thief.send("POST", "/api/auth/passkey/sign-in-end", { response })).status;
		},
	};
}

test("a passkey signs its owner in", async () => {
	const { owner, thief, signIn } = await withPasskey();
	expect(await signIn()).toBe(200);
	expect((await thief.get("/api/console/me")).body.user.email).toBe(owner.email);
});

test("a new password ends a passkey sign-in that is in progress", async () => {
	for (const first of ["session", "reset"] as const) {
		const { owner, thief, userId, signIn } = await withPasskey();
		await owner.send("POST", "/api/auth/request-password-reset", { email: owner.email });
		const token = new URL(await mailedLink(owner)).searchParams.get("token");
		const newPassword = "another good one, long enough";
		const reset = () => newPerson(service).send("POST", "/api/auth/reset-password", { token, newPassword });
		// Delays the last step of one request (creating the session or removing the passkey) until the other has ended.
		const [when, table] = first === "reset" ? ["insert", "session"] : ["delete", "passkey"];
		await sql.unsafe(`create trigger test_held before ${when} on ${table} for each row execute function test_held()`);
		const blocked = await sql.begin(async (hold) => {
			await hold`select pg_advisory_xact_lock(42)`;
			const waits = first === "reset" ? signIn() : reset();
			await waitFor(async () => (await lockWaits(sql)) > 0, `the ${when} to be waited for`);
			if (first === "reset") await hold`delete from passkey where user_id = ${userId}`;
			else expect(await signIn()).toBe(200);
			return { waits };
		});
		await blocked.waits;
		await sql.unsafe(`drop trigger test_held on ${table}`);
		expect([first, (await thief.get("/api/console/me")).status]).toEqual([first, 401]);
	}
});
