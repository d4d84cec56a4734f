/** Tests of a standby that lacks the last commits and takes over while instances run. */
import { expect, test } from "bun:test";
import { moveToAnotherServer } from "../support/another-server.ts";
import { waitFor } from "../support/wait.ts";
import { sendChat } from "./chat-client.ts";
import { withFleet } from "./fleet.ts";

const { fleet, member } = await withFleet({ instances: 1 });
const { sql } = fleet;

test("after a failover that lost the last key changes an instance serves known keys", async () => {
	const account = await fleet.account();
	const key = await fleet.key(account);
	const ask = () => sendChat(member, key, { words: 3, stream: false, maxTokens: 5 });
	expect((await ask()).status).toBe(200);
	const lost = await fleet.key(account);
	const [newest] = await sql`select max(seq) as seq from control_log`;
	const applied = () => sql`select 1 from instance_now where applied_seq >= ${newest?.seq}`;
	await waitFor(async () => (await applied()).length === 1, "the entry to be applied");
	await sql.begin(async (standby) => {
		await moveToAnotherServer(standby);
		await standby`delete from budget where id = ${lost.id}`;
		await standby`delete from api_key where id = ${lost.id}`;
		await standby`delete from control_log where seq = ${newest?.seq}`;
	});
	const joined = () => sql`select 1 from instance_now where epoch = 2 and state = 'live'`;
	await waitFor(async () => (await joined()).length === 1, "the instance to join there");
	await waitFor(async () => (await fetch(`${member.url}/readyz`)).ok, "the instance to be ready");
	expect(await ask()).toMatchObject({ status: 200, complete: true });
}, 30_000);
