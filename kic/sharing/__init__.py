"""More actuators than freedoms: efforts distributed by a criterion, within limits; internal loads."""
