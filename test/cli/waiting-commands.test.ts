import { expect, test } from "bun:test";
import { withCommands } from "./commands-world.ts";
import { PROGRAM } from "./run-cli.ts";

const { database, env, run, newAccount, newKey } = await withCommands();

async function addInstance(id: string, leaseSeconds: number): Promise<void> {
	await database.sql`
		insert into instance_beat (id, epoch, beat, state, ttl_ms, lease_until)
		values (${id}, 1, 1, 'live', ${leaseSeconds * 1_000}, now() + make_interval(secs => ${leaseSeconds}))`;
}
const stateOf = async (id: string) => (await database.sql`select state from instance_now where id = ${id}`)[0]?.state;
const removeAll = () => database.sql`delete from instance_beat`;

test("`key rotate` waits for all instances, and prints the secret even on a timeout", async () => {
	const { id } = await newKey(await newAccount());
	await addInstance("away", 600);
	const later = await run("key", "update", id, "--cap-usd", "1", "--no-wait");
	expect(later.json()).toMatchObject({ id, effective: false, pending: [{ id: "away" }] });
	expect((await run("key", "update", id, "--cap-usd", "2", "--timeout", "1s")).exitCode).toBe(1);
	const rotated = await run("key", "rotate", id, "--grace", "0", "--timeout", "1s");
	expect(rotated.exitCode).toBe(1);
	expect(rotated.json()).toMatchObject({ effective: false, secret: expect.any(String) });
	await removeAll();
});

test("`key rotate` that is interrupted has already printed how to get its secret", async () => {
	const { id } = await newKey(await newAccount());
	await addInstance("away", 600);
	const child = Bun.spawn([...PROGRAM, "key", "rotate", id, "--grace", "0", "--json"], {
		env: { PATH: process.env.PATH ?? "", ...env },
		stdio: ["ignore", "pipe", "pipe"],
	});
	const replacement = async () =>
		(await database.sql`select replaced_by from api_key where id = ${id}`)[0]?.replaced_by;
	const reader = child.stderr.getReader();
	const { value } = await reader.read();
	child.kill("SIGINT");
	await child.exited;
	const [, token = ""] = /--token (\S+)`/.exec(new TextDecoder().decode(value)) ?? [];
	const again = await run("key", "rotate", id, "--token", token, "--no-wait");
	expect(again.json()).toMatchObject({ id: await replacement(), secret: expect.any(String) });
	expect(await new Response(child.stdout).text()).toBe("");
	await removeAll();
}, 20_000);

test("`key revoke` is effective at once if there is no instance", async () => {
	const { id } = await newKey(await newAccount());
	const revoked = await run("key", "revoke", id);
	expect(revoked.exitCode).toBe(0);
	expect(revoked.json()).toEqual({ id, effective: true, elapsed_ms: expect.any(Number) });
});

test("`key revoke` waits until a silent instance's lease ends, then fences it off", async () => {
	const { id } = await newKey(await newAccount());
	await addInstance("silent", 1);
	const startedMs = performance.now();
	const revoked = await run("key", "revoke", id);
	expect(revoked.json()).toMatchObject({ effective: true });
	expect(performance.now() - startedMs).toBeGreaterThan(1_500);
	expect(await stateOf("silent")).toBe("dead");
	await removeAll();
});

test("`account suspend` stops waiting when the instance has applied the change", async () => {
	const account = await newAccount();
	await addInstance("quick", 300);
	const suspended = run("account", "suspend", account);
	const giveUpAt = performance.now() + 25_000;
	while (performance.now() < giveUpAt) {
		const [row] = await database.sql`select max(seq) as seq from control_log where subject = ${account}`;
		if (row?.seq !== null) break;
		await Bun.sleep(5);
	}
	await database.sql`update instance_beat set applied_seq = (select max(seq) from control_log) where id = 'quick'`;
	expect((await suspended).json()).toMatchObject({ id: account, state: "suspended", effective: true });
	expect((await run("account", "unsuspend", account, "--no-wait")).json()).toMatchObject({ state: "active" });
	await removeAll();
});

test("`instance recover` requires an ended lease and --journal-lost", async () => {
	await addInstance("gone", 300);
	const { data } = (await run("instance", "list")).json();
	expect(data).toMatchObject([{ id: "gone", epoch: 1, state: "live", leased_usd: "0.00" }]);
	expect((await run("instance", "recover", "gone")).exitCode).toBe(2);
	let renews = true;
	const renewing = (async () => {
		while (renews) {
			// The lease outlives the test, so that only the renewals can show recovery that the instance is alive.
			await database.sql`select instance_renew('gone', 1, 0, 300000)`;
			await Bun.sleep(20);
		}
	})();
	const running = await run("instance", "recover", "gone", "--journal-lost");
	expect([running.exitCode, JSON.parse(running.stderr).error.code]).toEqual([1, "conflict"]);
	renews = false;
	await renewing;
	await database.sql`select instance_renew('gone', 1, 0, 500)`;
	const startedMs = performance.now();
	expect((await run("instance", "recover", "gone", "--journal-lost")).json()).toEqual({
		id: "gone",
		epochs: 1,
		leases: 0,
	});
	expect(performance.now() - startedMs).toBeGreaterThan(1_500);
	expect((await run("instance", "list")).json()).toEqual({ data: [], next: null });
	expect((await run("instance", "list", "--all")).json().data).toMatchObject([{ id: "gone", state: "left" }]);
	await removeAll();
});
