import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../src/base/log.ts";
import { loadConfig } from "../../src/config.ts";
import { findPostmaster } from "../../src/db/postmaster.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { createApp } from "../support/app.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { ask, priceOf } from "../support/chat.ts";
import { placeCluster } from "../support/made-cluster.ts";
import { quickFolder } from "../support/memory-folder.ts";
import { paidAccount } from "../support/paid-account.ts";
import { chatModel } from "../support/service.ts";
import { reply, withUpstream } from "../support/upstream-server.ts";
import { waitFor } from "../support/wait.ts";

/** The whole service on its embedded PostgreSQL. */

const CREDIT = 100_000_000_000;
const dataDir = temporaryFolder(quickFolder());
const upstream = withUpstream("vllm");
const path = join(dataDir, "tollgate.yaml");
writeFileSync(path, `models:\n${chatModel({ url: upstream.url, dialect: "vllm" })}\n`);
mkdirSync(join(dataDir, "data"));
await placeCluster(join(dataDir, "data"));
const env = { PORT: "0", DATA_DIR: join(dataDir, "data"), CONFIG: path };
const app = await createApp(loadConfig(env, dataDir), { log: silentLog });
atEnd(async () => {
	await app.stop();
	expect(postmaster()).toBeUndefined();
});

const postmaster = () => findPostmaster(join(dataDir, "data", "postgres", "cluster"));

async function customer(): Promise<{ accountId: string; secret: string }> {
	const { statements } = app.db;
	const accountId = await paidAccount(statements, nanoUsd(CREDIT));
	const maker = { statements, digest: createDigest(app.secrets.keyPepper), serviceName: app.config.serviceName };
	const { secret } = await createKey(maker, accountId, { name: "warm" });
	return { accountId, secret };
}

test("warm keys work while the embedded server is dead, and charges arrive once", async () => {
	const { accountId, secret } = await customer();
	let served = 0;
	const chat = async () => {
		upstream.next(reply().text("a b"));
		const response = await fetch(`${app.url}/v1/chat/completions`, {
			method: "POST",
			headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
			body: JSON.stringify(ask()),
		});
		expect([response.status, (await response.json()).choices?.[0]?.message.content]).toEqual([200, "a b"]);
		served += 1;
	};
	await chat();
	const killed = postmaster();
	process.kill(killed?.pid as number, "SIGKILL");
	await waitFor(() => postmaster() === undefined, "the server to die");
	let servedDead = 0;
	await waitFor(
		async () => {
			const dead = postmaster()?.ready !== true;
			await chat();
			if (dead) servedDead += 1;
			return !dead;
		},
		"a new server",
		30_000,
	);
	expect(servedDead).toBeGreaterThan(0);
	expect(postmaster()).toMatchObject({ port: killed?.port as number });
	expect(postmaster()?.pid).not.toBe(killed?.pid as number);
	for (let more = 0; more < 5; more++) await chat();

	await waitFor(
		() => {
			const view = app.instanceLease.present()?.view();
			return view !== undefined && view.running === 0 && view.queued === 0;
		},
		"all settlements to reach the new server",
		30_000,
	);
	const { spent, held } = await accountBalance(app.db.statements, accountId);
	expect([Number(spent), Number(held)]).toEqual([served * priceOf(6, 2), 0]);
	const [rows] = await app.db.statements`select count(*)::int as rows from usage_event where account_id = ${accountId}`;
	expect(rows).toEqual({ rows: served });
	expect((await reconcile(app.db.statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
}, 90_000);
