import { Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { brand } from "../brand.ts";
import { CodeBlock, Tabs } from "../parts/code.tsx";
import { createStoredChoice } from "../remembered.ts";
import { useModels, useSession } from "../session.tsx";
import { t } from "../texts.tsx";
import { packageLine, TOOLS, type Tool, type ToolStep, type ToolValues } from "./tools.ts";

const remembered = createStoredChoice("tollgate-tool");

/** Steps for the tool that the user chose last. Without `apiKey` the steps contain a placeholder. */
export default function ToolChoice({ apiKey, models }: { apiKey?: string; models?: readonly string[] }) {
	const facts = useToolValues(apiKey, models);
	const chosen = TOOLS.find(({ id }) => id === remembered.read());
	const toolOf = (name: string) => TOOLS.find((tool) => tool.name === name) ?? TOOLS[0];
	return (
		<Tabs
			label={t("Tool")}
			names={TOOLS.map(({ name }) => name)}
			initial={chosen?.name}
			onChange={(name) => remembered.write(toolOf(name).id)}
		>
			{(name) => <ToolSteps tool={toolOf(name)} facts={facts} />}
		</Tabs>
	);
}

export function ToolSteps({ tool, facts }: { tool: Tool; facts: ToolValues }) {
	const steps = tool.steps(facts);
	return (
		<Stack gap={14}>
			{tool.needs && <p className="dim small">{tool.needs}</p>}
			<Stack component="ol" gap="xs">
				{steps.map((step, place) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: a tool's steps stand still
					<li key={place}>
						<Step step={step} />
					</li>
				))}
			</Stack>
		</Stack>
	);
}

function Step({ step }: { step: ToolStep }) {
	const [text, code, label]: [ReactNode, string | undefined, string?] =
		step.does === "packages"
			? [t("Install"), packageLine(step)]
			: step.does === "file"
				? [<code key="path">{step.path}</code>, step.code, t("Copy {path}", { path: step.path })]
				: [step.say, step.code];
	return (
		<>
			<p className="small">{text}</p>
			{code !== undefined && <CodeBlock code={code} label={label ?? t("Copy")} />}
		</>
	);
}

export function useToolValues(apiKey?: string, models?: readonly string[]): ToolValues {
	const { config } = useSession();
	return {
		baseUrl: config.baseUrl,
		model: useExampleModel(models),
		apiKey: apiKey ?? `sk_${config.serviceName}_…`,
		serviceName: brand.name,
		question: "Name three rivers of Europe.",
	};
}

/** Returns the id of a connected model that the key may use. */
function useExampleModel(allowed: readonly string[] = []): string {
	const fit = useModels().data?.items.filter(
		({ id, modes }) => modes.includes("chat") && (allowed.length === 0 || allowed.includes(id)),
	);
	const model = fit?.find(({ status }) => status === "connected") ?? (allowed.length === 0 ? undefined : fit?.[0]);
	return model?.id ?? "MODEL_ID";
}
