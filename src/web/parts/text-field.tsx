import { TextInput, type TextInputProps } from "@mantine/core";

/** A line of text that must be given. */
export function TextField({
	onChange,
	...rest
}: Omit<TextInputProps, "onChange"> & { value: string; onChange: (value: string) => void }) {
	return (
		<TextInput required withAsterisk={false} onChange={(event) => onChange(event.currentTarget.value)} {...rest} />
	);
}
