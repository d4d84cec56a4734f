import type { ReactNode } from "react";
import { useId, useState } from "react";
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

/** The same thing in several languages. */
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

/** One of several views of the same thing. Arrow keys move between them. */
export function Tabs(props: {
	label: string;
	names: readonly string[];
	index: number;
	onChoose: (index: number) => void;
	children: ReactNode;
}) {
	const { names, index } = props;
	const id = useId();
	function move(step: number) {
		const next = (index + step + names.length) % names.length;
		props.onChoose(next);
		document.getElementById(`${id}-tab-${next}`)?.focus();
	}
	return (
		<div className="code-tabs">
			<div role="tablist" aria-label={props.label} className="tabs">
				{names.map((name, place) => (
					<button
						key={name}
						id={`${id}-tab-${place}`}
						type="button"
						role="tab"
						aria-selected={place === index}
						aria-controls={`${id}-panel`}
						tabIndex={place === index ? 0 : -1}
						onClick={() => props.onChoose(place)}
						onKeyDown={(event) => {
							if (event.key === "ArrowRight") move(1);
							if (event.key === "ArrowLeft") move(-1);
						}}
					>
						{name}
					</button>
				))}
			</div>
			<div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${index}`}>
				{props.children}
			</div>
		</div>
	);
}
