import { runHere } from "../cli/run-here.ts";
import { operator, PERSON_ENV, signedUp, topUp } from "../console/person.ts";
import { managementClient } from "../management/management-client.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { ask, postJson } from "../support/chat.ts";
import { secondGateway } from "../support/second-gateway.ts";
import { chatModel, withService } from "../support/service.ts";
import { withDatabaseProxy } from "../support/tcp-proxy.ts";
import { withUpstream } from "../support/upstream-server.ts";

const LEASE_TTL_S = "6";

/** Two instances and users of each role, which all tests of a file share. One instance can be cut off from Postgres. */
export async function withCutOffWorld() {
	const upstream = withUpstream("vllm");
	const service = await withService({
		models: chatModel({ url: upstream.url, dialect: "vllm" }),
		env: { ...PERSON_ENV, LEASE_TTL_S },
	});
	const staff = await operator(service);
	const owner = await signedUp(service);
	await topUp(owner, staff);
	const at = `account=${owner.accountId}`;

	/** Connects the second instance to Postgres through a proxy that can cut its connections. */
	const { proxy, url } = withDatabaseProxy(service.db.url);
	const distant = await secondGateway(service, url, { LEASE_TTL_S, DRAIN_S: "1" });
	// Restores the connections; without them, the instance's stop would wait for the database.
	atEnd(() => proxy.thaw(false));
	const script = await managementClient(service);
	const commandLine = {
		DATABASE_URL: service.db.url,
		DATA_DIR: temporaryFolder(),
		KEY_PEPPER: service.app.secrets.keyPepper,
		CONSOLE_SECRET: "c".repeat(32),
	};

	const cli = async (...args: string[]): Promise<boolean> =>
		(await runHere([...args, "--json"], commandLine)).json<{ effective: boolean }>().effective;
	const managed = async (method: string, path: string, body: object = {}) => {
		const answer = await script.send(method, path, body);
		return answer.status === 200 && answer.body.in_force.effective;
	};
	/** True if the instance that may be cut off serves a request with this key. */
	async function served(secret: string): Promise<boolean> {
		const response = await postJson(`${distant.url}/v1/chat/completions`, secret, ask("hello", { max_tokens: 5 }));
		await response.text();
		return response.status === 200;
	}

	return { service, staff, owner, at, proxy, cli, managed, served };
}

export type CutOffWorld = Awaited<ReturnType<typeof withCutOffWorld>>;
