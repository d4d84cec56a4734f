import { Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { brand } from "../brand.ts";
import { Brand } from "../shell.tsx";
import { Panel } from "./page.tsx";
import { LanguageSwitch } from "./switches.tsx";

export function AuthLayout(props: { title: string; children: ReactNode; below?: ReactNode }) {
	return (
		<main className="auth">
			<title>{`${props.title} · ${brand.name}`}</title>
			<Brand to="/" />
			<Panel>
				<Stack gap={14}>
					<h1>{props.title}</h1>
					{props.children}
				</Stack>
			</Panel>
			{props.below && <div className="dim">{props.below}</div>}
			<LanguageSwitch />
		</main>
	);
}
