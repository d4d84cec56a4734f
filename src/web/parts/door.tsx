import type { ReactNode } from "react";
import { brand } from "../brand.ts";
import { Brand } from "../shell.tsx";
import { LanguageSwitch } from "./language-switch.tsx";

/** The frame of the pages around signing in. */
export function Door(props: { title: string; children: ReactNode; below?: ReactNode }) {
	return (
		<main className="door">
			<title>{`${props.title} · ${brand.name}`}</title>
			<div className="door-card">
				<Brand to="/" />
				<section className="panel">
					<div className="panel-body stack">
						<h1>{props.title}</h1>
						{props.children}
					</div>
				</section>
				{props.below && <div className="dim">{props.below}</div>}
				<LanguageSwitch />
			</div>
		</main>
	);
}
