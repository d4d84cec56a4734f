/**
 * What a key costs that the gateway knows and nobody uses: fills a keyring, as it is in the product, and prints
 * `{"port":0,"bytesPerKey":…}`. Its argument is how many keys, each of an account of its own.
 */
import { silentLog } from "../../src/base/log.ts";
import { createDigest } from "../../src/keys/digest.ts";
import type { LoadedKey } from "../../src/keys/keyring.ts";
import { createKeyring } from "../../src/keys/keyring.ts";
import type { Secret } from "../../src/keys/secret.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";

const keys = Number(process.argv[2]);
let nth = 0;
const load = async (): Promise<LoadedKey> => {
	// As the driver gives a row: texts and objects of its own for each.
	const place = String(nth).padStart(26, "0");
	const fields = plainKeyFields(`key_${place}`, { accountId: `acc_${place}`, name: `bench ${nth % 8}` });
	nth += 1;
	return JSON.parse(JSON.stringify({ seq: 1, key: fields, account: plainAccountFields })) as LoadedKey;
};
const keyring = createKeyring({ load, log: silentLog }, { keysMax: keys });
const digest = createDigest("p".repeat(64));
const settled = async () => {
	Bun.gc(true);
	await Bun.sleep(200);
	Bun.gc(true);
	return process.memoryUsage().rss;
};
// The code has run once before memory is looked at.
await keyring.load(digest("sk_first" as Secret));
const before = await settled();
for (let key = 1; key < keys; key++) await keyring.load(digest(`sk_${key}` as Secret));
const after = await settled();
if (keyring.size().keys !== keys) throw new Error(`${keyring.size().keys} keys are known`);
process.stdout.write(`${JSON.stringify({ bytesPerKey: (after - before) / keys })}\n`);
