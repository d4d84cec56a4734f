/** The files in `deploy/` match the service: variables, probes, ports, metrics, image and drain. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import packageJson from "../../package.json" with { type: "json" };
import { checkCatalog } from "../../src/catalog/file.ts";
import { loadConfig } from "../../src/config.ts";
import { CONFIG_TABLE } from "../../src/config-table.ts";
import { chatModel, withService } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { image } from "./dockerfile.ts";

const ROOT = join(import.meta.dir, "../..");
const DEPLOY = join(ROOT, "deploy");
const read = (path: string) => readFileSync(join(DEPLOY, path), "utf8");
/** Time after the last answer for writing settlements and returning credit. */
const AFTER_DRAIN_S = 15;

type Tree = Record<string, unknown>;
const at = (tree: unknown, ...path: (string | number)[]) =>
	path.reduce<unknown>((part, key) => (part as Tree | undefined)?.[key], tree);

/** Converts the chart's templates to YAML: each value becomes `x`, and control lines are removed. */
const withoutTemplates = (text: string) =>
	text
		.split("\n")
		.filter((line) => !/^\s*\{\{-? ?(if|else|end|with|range|include|toYaml)\b.*\}\}$/.test(line))
		.join("\n")
		.replaceAll(/\{\{.*?\}\}(?=[\s,\]}]|$|@|:|\/|-)/gm, "x");

function parse(path: string, text = read(path)): unknown[] {
	const documents = parseAllDocuments(text);
	return documents.map((document) => {
		expect({ path, problems: [...document.errors, ...document.warnings].map(({ message }) => message) }).toEqual({
			path,
			problems: [],
		});
		// Compose files merge maps with `<<`.
		return document.toJS();
	});
}

const compose = parseAllDocuments(read("compose/compose.yaml"), { merge: true })[0]?.toJS() as Tree;
const services = compose.services as Record<string, Tree>;
const instances = Object.entries(services).filter(([name]) => name.startsWith("tollgate-"));
const chart = "helm/tollgate";
const values = parse(`${chart}/values.yaml`)[0] as Tree;
const statefulSet = read(`${chart}/templates/statefulset.yaml`);
const pod = at(parse("statefulset", withoutTemplates(statefulSet))[0], "spec", "template", "spec") as Tree;
const container = at(pod, "containers", 0) as Tree;
const unit = read("systemd/tollgate.service");
const madeSecrets = [...read("compose/make-env.sh").matchAll(/[A-Z_]{4,}/g)].map(([name]) => name);

/** Variables that the runtime and libraries read, not this service. */
const FOREIGN = [
	"BUN_CONFIG_MAX_HTTP_REQUESTS",
	"MIMALLOC_PURGE_DELAY",
	"MIMALLOC_PURGE_HOLES_MIN_INTERVAL",
	"DO_NOT_TRACK",
];

/** The environment of each deployment as the process sees it, including the image's variables. */
function environments(): Record<string, Record<string, string>> {
	const fill = (value: unknown) =>
		String(value).replaceAll(/\$\{\w+:(?:\?|-([^}]*))\}/g, (_, given?: string) => given ?? "s".repeat(64));
	const unitLines = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)];
	const fromUnit = Object.fromEntries(unitLines.map(([, name = "", value = ""]) => [name, value]));
	const env = container.env as { name: string; value?: string }[];
	const fromChart = Object.fromEntries(env.flatMap(({ name, value = "" }) => (name === "x" ? [] : [[name, value]])));
	return {
		systemd: fromUnit,
		chart: {
			...image.env,
			...fromChart,
			INSTANCE_ID: "tollgate-0",
			JOURNAL: String(values.journal),
			DRAIN_S: String(values.drainSeconds),
			OTEL_EXPORTER_OTLP_ENDPOINT: String(at(values, "traces", "endpoint")),
			OTEL_TRACES_SAMPLER: String(at(values, "traces", "sampler")),
			OTEL_TRACES_SAMPLER_ARG: String(at(values, "traces", "ratio")),
			OTEL_RESOURCE_ATTRIBUTES: "service.instance.id=tollgate-0",
			...(values.env as Record<string, string>),
		},
		...Object.fromEntries(
			instances.map(([name, { environment }]) => [
				name,
				{ ...image.env, ...Object.fromEntries(Object.entries(environment as Tree).map(([k, v]) => [k, fill(v)])) },
			]),
		),
	};
}

test("each YAML file is valid, including the chart's templates", () => {
	const paths = [...new Bun.Glob("**/*.{yaml,yml}").scanSync(DEPLOY)];
	expect(paths.length).toBeGreaterThan(14);
	for (const path of paths) parse(path, path.includes("/templates/") ? withoutTemplates(read(path)) : read(path));
});

describe("the environment in the manifests", () => {
	const catalogue = read("compose/catalogue/tollgate.yaml");
	const named = [...catalogue.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string);
	const known = new Set([...CONFIG_TABLE.map(({ name }) => name), ...FOREIGN, ...named]);

	test.each(Object.entries(environments()))("of %s sets only variables that the service reads", (_, env) => {
		expect(Object.keys(env).length).toBeGreaterThan(4);
		expect(Object.keys(env).filter((name) => !known.has(name))).toEqual([]);
	});

	test.each(Object.entries(environments()))("of %s is valid for production and sends no traces", (_, env) => {
		const secrets = { DATABASE_URL: "postgres://a:b@c/d", KEY_PEPPER: "k".repeat(64), CONSOLE_SECRET: "c".repeat(64) };
		const paths = { CONFIG: join(DEPLOY, "compose/catalogue/tollgate.yaml"), PUBLIC_URL: "https://a.example" };
		const config = loadConfig({ ...secrets, ...env, ...paths }, ROOT);
		expect(config).toMatchObject({ production: true, workers: 1, drainMs: Number(env.DRAIN_S) * 1_000, traces: null });
		expect(env.CONFIG).toBe("/etc/tollgate/tollgate.yaml");
		const told = {
			OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
			OTEL_EXPORTER_OTLP_HEADERS: "authorization=x",
		};
		// With a collector, one request in a hundred is traced.
		expect(loadConfig({ ...secrets, ...env, ...paths, ...told }, ROOT).traces).toMatchObject({
			url: "http://collector:4318/v1/traces",
			sampler: "traceidratio",
			ratio: 0.01,
			headers: { authorization: "x" },
		});
	});

	test("sets trace variables only if there is a collector", () => {
		const block = /\{\{- with \.Values\.traces\.endpoint \}\}([\s\S]*?)\{\{- end \}\}/.exec(statefulSet)?.[1] ?? "";
		expect([...statefulSet.matchAll(/OTEL_\w+/g)].map(([name]) => name)).toEqual(
			[...block.matchAll(/OTEL_\w+/g)].map(([name]) => name),
		);
		expect(block).toContain("OTEL_EXPORTER_OTLP_ENDPOINT");
	});

	test("includes all required secrets in Compose's secrets file, and no other secret", () => {
		const asked = [...read("compose/compose.yaml").matchAll(/\$\{(\w+):\?\}/g)].map(([, name]) => name as string);
		const mounted = Object.values(compose.secrets as Record<string, { environment: string }>);
		const needed = new Set([...asked, ...mounted.map(({ environment }) => environment)]);
		expect(needed.size).toBe(5);
		expect([...needed].filter((name) => !madeSecrets.includes(name))).toEqual([]);
	});

	test("the example catalogue is valid", () => {
		expect(checkCatalog(catalogue, { VLLM_API_KEY: "key" })).toMatchObject({ ok: true });
	});
});

describe("the container image", () => {
	test("runs as its own user, read-only, with a volume for its data", () => {
		expect(image.uid).toBe(65_532);
		expect(at(pod, "securityContext")).toMatchObject({
			runAsNonRoot: true,
			runAsUser: image.uid,
			runAsGroup: image.uid,
			fsGroup: image.uid,
		});
		expect(at(container, "securityContext", "readOnlyRootFilesystem")).toBe(true);
		const mounts = container.volumeMounts as { name: string; mountPath: string }[];
		expect(mounts.find(({ name }) => name === "data")?.mountPath).toBe(image.env.DATA_DIR as string);
		for (const [, service] of instances) expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
	});

	test("has the version of this source", () => {
		expect(at(parse(`${chart}/Chart.yaml`)[0], "appVersion")).toBe(packageJson.version);
		for (const [, service] of instances) expect(String(service.image)).toEndWith(`:-tollgate:${packageJson.version}}`);
	});

	test("has a journal volume whose name differs for each Compose instance", () => {
		const volumes = instances.map(([, service]) =>
			(service.volumes as string[]).filter((volume) => volume.endsWith(`:${image.env.DATA_DIR}`)).join(),
		);
		const names = instances.map(([, service]) => at(service, "environment", "INSTANCE_ID"));
		expect([instances.length, new Set(volumes).size, new Set(names).size]).toEqual([2, 2, 2]);
		for (const volume of volumes)
			expect(Object.keys(compose.volumes as Tree)).toContain(volume.split(":")[0] as string);
	});
});

describe("a stop in the manifests", () => {
	const seconds = (text: unknown) => Number(/^(\d+)s?$/.exec(String(text))?.[1]);

	test("has enough time for the drain and its settlements", () => {
		const { systemd, ...others } = environments();
		expect(seconds(/^TimeoutStopSec=(.*)$/m.exec(unit)?.[1])).toBeGreaterThanOrEqual(
			Number(systemd?.DRAIN_S) + AFTER_DRAIN_S,
		);
		for (const [name, service] of instances)
			expect(seconds(service.stop_grace_period)).toBeGreaterThanOrEqual(Number(others[name]?.DRAIN_S) + AFTER_DRAIN_S);
		const [, rest] =
			/terminationGracePeriodSeconds: \{\{ add \.Values\.drainSeconds \.Values\.leaveSeconds (\d+) \}\}/.exec(
				statefulSet,
			) ?? [];
		expect(Number(rest)).toBeGreaterThanOrEqual(AFTER_DRAIN_S);
		expect(statefulSet).toContain("preStop: { sleep: { seconds: {{ .Values.leaveSeconds }} } }");
	});

	test("signals only the parent process, and a reload sends SIGUSR2", () => {
		expect(unit).toMatch(/^KillMode=mixed$/m);
		expect(unit).toMatch(/^ExecReload=\/bin\/kill -USR2 \$MAINPID$/m);
	});
});

describe("endpoints in the manifests", () => {
	const caddy = read("compose/Caddyfile");
	const prometheus = parse("compose/prometheus.yml")[0];
	const monitor = parse("monitor", withoutTemplates(read(`${chart}/templates/servicemonitor.yaml`)))[0];

	test("use the port of the service", () => {
		const targets = at(prometheus, "scrape_configs", 0, "static_configs", 0, "targets") as string[];
		const behind = [...caddy.matchAll(/\b(tollgate-\d:\d+)/g)].map(([, target]) => target as string);
		for (const found of [targets, behind])
			expect(found.toSorted()).toEqual(instances.map(([name]) => `${name}:${image.env.PORT}`).toSorted());
		expect(at(container, "ports", 0)).toEqual({ name: "http", containerPort: Number(image.env.PORT) });
	});

	test("use existing paths, and the autoscaler uses an existing metric", async () => {
		const upstream = withUpstream();
		const token = "t".repeat(32);
		const service = await withService({ models: chatModel({ url: upstream.url }), env: { METRICS_TOKEN: token } });
		const probes = ["startupProbe", "livenessProbe", "readinessProbe"].map((probe) => at(container, probe, "httpGet"));
		expect(probes.map((probe) => at(probe, "port"))).toEqual(["http", "http", "http"]);
		const paths = probes.map((probe) => at(probe, "path") as string);
		expect(paths).toEqual(["/livez", "/livez", "/readyz"]);
		expect(/health_uri (\S+)/.exec(caddy)?.[1]).toBe("/readyz");
		for (const path of paths) expect([path, (await service.get(path)).status]).toEqual([path, 200]);

		const metrics = at(monitor, "spec", "endpoints", 0, "path") as string;
		expect((await service.get(metrics)).status).toBe(404);
		const text = await (await service.get(metrics, token)).text();
		const hpa = read(`${chart}/templates/horizontalpodautoscaler.yaml`);
		const metric = at(parse("autoscaler", withoutTemplates(hpa))[0], "spec", "metrics", 0, "pods", "metric");
		const [[label, value] = []] = Object.entries(at(metric, "selector", "matchLabels") as Record<string, string>);
		expect(text).toContain(`\n${at(metric, "name")}{${label}="${value}"} `);
	});

	test("use the metrics token, and the job name that the alerts use", () => {
		expect(at(prometheus, "scrape_configs", 0, "job_name")).toBe("tollgate");
		expect(at(prometheus, "scrape_configs", 0, "authorization", "credentials_file")).toBe("/run/secrets/metrics_token");
		expect(at(compose, "secrets", "metrics_token", "environment")).toBe("METRICS_TOKEN");
		expect(at(monitor, "spec", "endpoints", 0, "authorization", "credentials", "key")).toBe("METRICS_TOKEN");
		// The Prometheus operator names the job after this label of the Service, which is the chart's name.
		expect(at(monitor, "spec", "jobLabel")).toBe("app.kubernetes.io/name");
		expect(read(`${chart}/templates/_names.tpl`)).toContain("app.kubernetes.io/name: tollgate\n");
		expect(read("prometheus/tollgate.rules.yml")).toContain('up{job="tollgate"}');
	});

	test("trust only Compose's balancer as a proxy", () => {
		const balancer = at(services, "balancer", "networks", "tollgate", "ipv4_address") as string;
		for (const [, service] of instances) expect(at(service, "environment", "TRUSTED_PROXIES")).toBe(balancer);
	});
});
