import { Tabs as MantineTabs } from "@mantine/core";
import { type ReactNode, useState } from "react";
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

/** One snippet in several languages. */
export function CodeTabs({ snippets }: { snippets: readonly Snippet[] }) {
	const [index, setIndex] = useState(0);
	const shown = snippets[index] ?? snippets[0];
	if (!shown) return null;
	return (
		<Tabs label={t("Language")} names={snippets.map(({ label }) => label)} index={index} onChoose={setIndex}>
			<CodeBlock code={shown.code} />
		</Tabs>
	);
}

/** One of several views of the same thing. */
export function Tabs(props: {
	label: string;
	names: readonly string[];
	index: number;
	onChoose: (index: number) => void;
	children: ReactNode;
}) {
	const { names, index } = props;
	return (
		<MantineTabs
			variant="pills"
			value={names[index] ?? null}
			onChange={(name) => props.onChoose(names.indexOf(name ?? ""))}
		>
			<MantineTabs.List aria-label={props.label} mb={6}>
				{names.map((name) => (
					<MantineTabs.Tab key={name} value={name} py={4} px={9}>
						{name}
					</MantineTabs.Tab>
				))}
			</MantineTabs.List>
			<MantineTabs.Panel value={names[index] ?? ""}>{props.children}</MantineTabs.Panel>
		</MantineTabs>
	);
}
