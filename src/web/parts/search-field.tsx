import { TextInput } from "@mantine/core";

/** The page's search, which the slash leads to (`shortcuts.tsx`). */
export function SearchField(props: {
	label: string;
	placeholder: string;
	width?: number;
	value: string;
	onChange: (value: string) => void;
}) {
	return (
		<TextInput
			size="xs"
			w={props.width}
			aria-label={props.label}
			placeholder={props.placeholder}
			data-search
			value={props.value}
			onChange={(event) => props.onChange(event.currentTarget.value)}
		/>
	);
}
