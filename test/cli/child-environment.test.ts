import { expect, test } from "bun:test";
import { consoleEnvironment, gatewayEnvironment } from "../../src/cli/child-environment.ts";
import { CONFIG_TABLE } from "../../src/config-table.ts";

const facts = {
	config: { workers: 1, demo: false, fileStore: "disk" as const },
	secrets: { keyPepper: "the pepper", consoleSecret: "the session secret", instanceId: "here" },
	databaseUrl: "postgres://made/for-it",
	internalSecret: "of this run",
	runDir: "/run/folder",
	port: 1234,
};
const env = {
	...Object.fromEntries(CONFIG_TABLE.map(({ name }) => [name, `given ${name}`])),
	PATH: "/bin",
	HTTPS_PROXY: "http://proxy",
	OPENAI_KEY_OF_A_MODEL_SERVER: "sk-canary",
	UNSET: undefined,
};
const namesFor = (...planes: string[]) =>
	CONFIG_TABLE.filter(({ plane }) => planes.includes(plane)).map(({ name }) => name);

test("gateway and console each get the common variables and their own variables only", () => {
	const gateway = gatewayEnvironment(env, facts, 1);
	const people = consoleEnvironment(env, facts);
	for (const name of namesFor("console")) expect([name, gateway[name]]).toEqual([name, undefined]);
	for (const name of namesFor("gateway")) expect([name, people[name]]).toEqual([name, undefined]);
	expect(namesFor("console")).toContain("STRIPE_SECRET_KEY");
	expect(people.STRIPE_SECRET_KEY).toBe("given STRIPE_SECRET_KEY");
	expect([gateway.OPENAI_KEY_OF_A_MODEL_SERVER, people.OPENAI_KEY_OF_A_MODEL_SERVER]).toEqual(["sk-canary", undefined]);
	for (const child of [gateway, people]) expect(child).toMatchObject({ PATH: "/bin", HTTPS_PROXY: "http://proxy" });
});

test("a child process gets the S3 key only if it uses S3", () => {
	const has = (child: Record<string, string>) => child.S3_SECRET_ACCESS_KEY !== undefined;
	const archive = { ...env, ARCHIVE: "s3://books/days", S3_BUCKET: undefined };
	expect([has(gatewayEnvironment(archive, facts, 1)), has(consoleEnvironment(archive, facts))]).toEqual([false, true]);
	const files = { ...env, S3_BUCKET: "files", ARCHIVE: "/var/archive" };
	expect([has(gatewayEnvironment(files, facts, 1)), has(consoleEnvironment(files, facts))]).toEqual([true, false]);
});

test("a value that the parent process computed overrides the environment", () => {
	const shared = {
		KEY_PEPPER: "the pepper",
		DATABASE_URL: "postgres://made/for-it",
		INTERNAL_SECRET: "of this run",
		RUN_DIR: "/run/folder",
		PORT: "1234",
		INSTANCE_ID: "here",
	};
	const gateway = gatewayEnvironment(env, facts, 1);
	expect(gateway).toMatchObject({
		...shared,
		ROLE: "gateway",
		WORKER_INDEX: "1",
		FILE_STORE: "disk",
		BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
	});
	expect(JSON.stringify(gateway)).not.toContain("session secret");
	expect(consoleEnvironment(env, facts)).toMatchObject({
		...shared,
		ROLE: "console",
		CONSOLE_SECRET: "the session secret",
	});
});

test("each gateway gets a different instance name, and both planes get DEMO", () => {
	const several = { ...facts, config: { ...facts.config, workers: 3, demo: true } };
	expect(gatewayEnvironment(env, several, 2)).toMatchObject({ INSTANCE_ID: "here-w2", WORKER_INDEX: "2", DEMO: "1" });
	expect(consoleEnvironment(env, several)).toMatchObject({ INSTANCE_ID: "here", DEMO: "1" });
	expect(consoleEnvironment({}, facts).DEMO).toBeUndefined();
});
