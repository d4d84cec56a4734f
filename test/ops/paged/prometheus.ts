/** Runs Prometheus with the product's rules and dashboards, with shorter durations. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { quietPort } from "../../chaos/serve-process.ts";

const DEPLOY = join(import.meta.dir, "../../../deploy");
/** Replaces the minutes in the `for` clauses of the rules. */
const FOR = "2s";
const WINDOW = "30s";
/** Thresholds that a run of minutes may not reach, and the lower thresholds that replace them. */
const REACHABLE: Readonly<Record<string, readonly [from: string, to: string]>> = {
	TollgateMemory: ["2e9", "5e7"],
	TollgateBooksOld: ["3600", "20"],
	TollgateDiskFills: ["< 4", "< 1e9"],
};

interface Rule {
	alert: string;
	expr: string;
	for?: string;
}
interface Panel {
	readonly title: string;
	readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
	readonly fieldConfig: { readonly defaults: { readonly unit: string } };
}
export interface Sample {
	readonly metric: Readonly<Record<string, string>>;
	readonly values: readonly (readonly [number, string])[];
}
export interface PanelResult {
	readonly title: string;
	readonly unit: string;
	readonly lines: readonly { readonly legend: string; readonly sample: Sample }[];
	/** Dashboard queries that returned nothing. */
	readonly empty: readonly string[];
}

const quick = (expr: string) => expr.replaceAll(/\[\d+[mh]\]/g, `[${WINDOW}]`).replaceAll("$instance", ".*");

export async function startPrometheus(instances: readonly string[]) {
	const folder = mkdtempSync(join(tmpdir(), "tollgate-prometheus-"));
	const port = quietPort();
	const rules = parse(readFileSync(join(DEPLOY, "prometheus/tollgate.rules.yml"), "utf8")) as {
		groups: { rules: Rule[] }[];
	};
	const alerts = rules.groups.flatMap((group) => group.rules);
	for (const rule of alerts) {
		const [from, to] = REACHABLE[rule.alert] ?? ["", ""];
		rule.expr = quick(from === "" ? rule.expr : rule.expr.replace(from, to));
		if (rule.for !== undefined) rule.for = FOR;
	}
	writeFileSync(join(folder, "rules.yml"), JSON.stringify(rules));
	const config = {
		global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
		rule_files: ["rules.yml"],
		scrape_configs: [{ job_name: "tollgate", static_configs: [{ targets: instances }] }],
	};
	writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config));
	const child = Bun.spawn(
		[
			"prometheus",
			`--config.file=${join(folder, "prometheus.yml")}`,
			`--storage.tsdb.path=${join(folder, "data")}`,
			`--web.listen-address=127.0.0.1:${port}`,
			"--log.level=warn",
		],
		{ stdio: ["ignore", "inherit", "inherit"] },
	);
	const url = `http://127.0.0.1:${port}`;
	const api = async <T>(path: string, query: Record<string, string>): Promise<T> => {
		const answer = await (await fetch(`${url}/api/v1/${path}?${new URLSearchParams(query)}`)).json();
		if (answer.status !== "success") throw new Error(`${path} ${JSON.stringify(query)}: ${answer.error}`);
		return answer.data as T;
	};
	while (
		!(await fetch(`${url}/-/ready`).then(
			({ ok }) => ok,
			() => false,
		))
	)
		await Bun.sleep(100);

	return {
		alerts: alerts.map(({ alert }) => alert),
		async firing(): Promise<Set<string>> {
			const { alerts: now } = await api<{ alerts: { state: string; labels: { alertname: string } }[] }>("alerts", {});
			return new Set(now.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname));
		},
		/** Prometheus' result of each dashboard query for the time since `sinceMs`. */
		async pictures(sinceMs: number): Promise<PanelResult[]> {
			const { panels } = JSON.parse(readFileSync(join(DEPLOY, "grafana/tollgate.json"), "utf8")) as { panels: Panel[] };
			const range = { start: String(sinceMs / 1_000), end: String(Date.now() / 1_000), step: "1" };
			return Promise.all(
				panels.map(async ({ title, targets, fieldConfig }) => {
					const asked = await Promise.all(
						targets.map(async ({ expr, legendFormat }) => {
							const { result } = await api<{ result: Sample[] }>("query_range", { query: quick(expr), ...range });
							const legend = ({ metric }: Sample) =>
								legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => metric[name] ?? "").trim();
							return { expr, lines: result.map((sample) => ({ legend: legend(sample), sample })) };
						}),
					);
					return {
						title,
						unit: fieldConfig.defaults.unit,
						lines: asked.flatMap(({ lines }) => lines),
						empty: asked.filter(({ lines }) => !lines.some(({ sample }) => hasNumber(sample))).map(({ expr }) => expr),
					};
				}),
			);
		},
		async stop() {
			child.kill("SIGTERM");
			await child.exited;
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

const hasNumber = ({ values }: Sample) => values.some(([, value]) => Number.isFinite(Number(value)));
