import { Tabs as MantineTabs } from "@mantine/core";
import type { ReactNode } from "react";
import { t } from "../texts.tsx";
import { CopyButton } from "./text.tsx";

export interface Snippet {
	readonly label: string;
	readonly code: string;
}

export function CodeBlock({ code, label = t("Copy") }: { code: string; label?: string }) {
	return (
		<div className="code">
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
			<pre tabIndex={0}>
				<code>{code}</code>
			</pre>
			<CopyButton text={code} label={label} />
		</div>
	);
}

export function CodeTabs({ snippets }: { snippets: readonly Snippet[] }) {
	const names = snippets.map(({ label }) => label);
	return (
		<Tabs label={t("Language")} names={names}>
			{(name) => <CodeBlock code={snippets.find(({ label }) => label === name)?.code ?? ""} />}
		</Tabs>
	);
}

export function Tabs(props: {
	label: string;
	names: readonly string[];
	initial?: string | undefined;
	onChange?: (name: string) => void;
	children: (name: string) => ReactNode;
}) {
	const { names, initial = names[0] ?? "", onChange } = props;
	return (
		<MantineTabs
			variant="pills"
			keepMounted={false}
			defaultValue={initial}
			onChange={(name) => name !== null && onChange?.(name)}
		>
			<MantineTabs.List aria-label={props.label} mb={6}>
				{names.map((name) => (
					<MantineTabs.Tab key={name} value={name} py={4} px={9}>
						{name}
					</MantineTabs.Tab>
				))}
			</MantineTabs.List>
			{names.map((name) => (
				<MantineTabs.Panel key={name} value={name}>
					{props.children(name)}
				</MantineTabs.Panel>
			))}
		</MantineTabs>
	);
}
